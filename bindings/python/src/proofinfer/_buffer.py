"""Read access to the memory of any object with the buffer protocol, writable or not, without a copy."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

_get = ctypes.pythonapi.PyObject_GetBuffer
_release = ctypes.pythonapi.PyBuffer_Release


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_: ClassVar[Any] = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get.argtypes = (ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int)
_get.restype = ctypes.c_int
_release.argtypes = (ctypes.POINTER(_PyBuffer),)
_release.restype = None


class Borrowed:
    """Holds an export of a contiguous buffer, so that its memory stays where it is. BufferError or TypeError if there
    is none.
    """

    __slots__ = ("_view", "address", "size_bytes")

    def __init__(self, source: Any) -> None:
        self._view = _PyBuffer()
        _get(source, self._view, 0)
        self.address = self._view.buf
        self.size_bytes = int(self._view.len)

    def release(self) -> None:
        """Gives the export back. More calls do nothing."""
        _release(self._view)

    __del__ = release

    def __enter__(self) -> "Borrowed":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
