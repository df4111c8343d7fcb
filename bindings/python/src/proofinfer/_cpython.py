"""What CPython's C API has and Python has not: read access to the memory of any buffer, writable or not, without a copy; and C
functions as finalizers."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

_get = ctypes.pythonapi.PyObject_GetBuffer
_release = ctypes.pythonapi.PyBuffer_Release
_new_method = ctypes.pythonapi.PyInstanceMethod_New
_new_method.argtypes = (ctypes.py_object,)
_new_method.restype = ctypes.py_object


def as_method(function: Any) -> Any:
    """A C function as a method that gets `self`. As `__del__` it runs no bytecode, so that no signal handler runs inside, whose
    exception (KeyboardInterrupt above all) the interpreter would print and forget.
    """
    return _new_method(function)


class Borrowed(ctypes.Structure):
    """Holds an export of a contiguous buffer, so that its memory stays where it is. BufferError or TypeError if there is none.

    It is CPython's Py_buffer.
    """

    _fields_: ClassVar[Any] = [
        ("address", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
        ("size_bytes", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]

    def __init__(self, source: Any) -> None:
        super().__init__()
        _get(source, self, 0)

    def __enter__(self) -> "Borrowed":
        return self

    def __exit__(self, *_: object) -> None:
        _release(self)

    # The second release, or one of a buffer that was refused, does nothing.
    __del__ = as_method(_release)


_get.argtypes = (ctypes.py_object, ctypes.POINTER(Borrowed), ctypes.c_int)
_get.restype = ctypes.c_int
_release.argtypes = (ctypes.POINTER(Borrowed),)
_release.restype = None
