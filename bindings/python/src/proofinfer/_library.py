"""Finds and loads the shared library, once a process, and says what was tried when that fails."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import threading
from typing import Iterator, Optional, Tuple, Union

from . import _ffi
from .errors import LibraryError, StateError

ENVIRONMENT_VARIABLE = "PROOFINFER_LIBRARY"
# The major version whose functions this package calls. Later minor versions only add.
MAJOR = 1

_lock = threading.Lock()
_loaded: Optional[_ffi.Library] = None


def file_name() -> str:
    """The library's file name on this system, the major version included."""
    return f"libproofinfer.{MAJOR}.dylib" if sys.platform == "darwin" else f"libproofinfer.so.{MAJOR}"


def packaged_path() -> str:
    """Where a wheel puts its copy."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib", file_name())


def candidates(path: Optional[str]) -> Iterator[Tuple[str, str]]:
    """(what to tell the user, what to load), first choice first. A place that was named is the only one."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if path is not None:
        yield "the given path", path
    elif named:
        yield f"the environment variable {ENVIRONMENT_VARIABLE}", named
    else:
        yield "the package's own copy", packaged_path()
        yield "the system's libraries", file_name()
        found = ctypes.util.find_library("proofinfer")
        if found and found != file_name():
            yield "the system's libraries", found


def check_version(library: ctypes.CDLL, name: str) -> None:
    """Raises LibraryError unless the functions have the meaning that this package knows."""
    try:
        version_number = library.proofinfer_version_number
    except AttributeError:
        raise LibraryError(f"{name} is no libproofinfer: it has no function proofinfer_version_number") from None
    version_number.restype = ctypes.c_int32
    number = int(version_number())
    major, minor, patch = number // 1000000, number // 1000 % 1000, number % 1000
    if major != MAJOR:
        raise LibraryError(
            f"{name} is libproofinfer {major}.{minor}.{patch}; this package needs {MAJOR}.x. "
            f"Install the proofinfer package of the same major version, or name another library in {ENVIRONMENT_VARIABLE}."
        )


def _open(path: Optional[str]) -> _ffi.Library:
    tried = []
    for origin, name in candidates(path):
        if os.path.dirname(name) and not os.path.exists(name):
            tried.append(f"{origin}, {name}: no such file")
            continue
        try:
            library = ctypes.CDLL(name)
        except OSError as problem:
            tried.append(f"{origin}, {name}: {problem}")
            continue
        check_version(library, name)
        try:
            return _ffi.Library(library, name)
        except AttributeError as problem:
            raise LibraryError(f"{name} lacks a function of libproofinfer {MAJOR}.0: {problem}") from None
    raise LibraryError("libproofinfer cannot be loaded. Tried: " + "; ".join(tried))


def load(path: Union[str, "os.PathLike[str]", None] = None) -> str:
    """Loads the library and returns its path or name. Without a call, the first object made does it.

    Looked at, in this order: `path`; the environment variable PROOFINFER_LIBRARY; the copy inside the package; the system's
    library search. A place that was named by the first two is the only one tried. One library a process: LibraryError if none
    can be loaded (the message lists what was tried), StateError if another one is loaded already.
    """
    wanted = None if path is None else os.path.abspath(os.fspath(path))
    loaded = library(wanted)
    if wanted is not None and os.path.realpath(loaded.name) != os.path.realpath(wanted):
        raise StateError(f"{loaded.name} is loaded already; one process has one libproofinfer, so {wanted} cannot be loaded")
    return loaded.name


def library(path: Optional[str] = None) -> _ffi.Library:
    """The loaded library; loads it when it is not."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _open(path)
    return _loaded


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
