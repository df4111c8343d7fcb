"""Handles of the C API with a Python lifetime, and calls that raise.

A handle is freed when the last Python reference to it goes. Its owner (Model, Session, ...) holds one, close() drops
it, and a call that another thread is inside holds one through its arguments. So a close never pulls a handle away
under a call, no lock is taken, and an interrupt between two bytecodes cannot leave a count wrong.
"""

from __future__ import annotations

import ctypes
import operator
import os
from array import array
from ctypes import byref, c_size_t, c_void_p
from typing import Any, Dict, Iterable, List, NoReturn, Optional, Tuple, Type, TypeVar, Union

from . import _ffi
from ._cpython import as_method
from ._library import library
from .errors import BY_CODE, ArgumentError, ClosedError, ProofinferError

BUFFER = 12  # PROOFINFER_E_BUFFER


class Handle(c_void_p):
    """One reference of the C API. Kinds derive from it, each with its free function as `__del__`."""


_kinds: Dict[str, Type[Handle]] = {}


def new_handle(kind: str) -> Handle:
    """A handle of a kind ("model") with no object behind it yet: the place that a create function fills."""
    handle = _kinds.get(kind)
    if handle is None:
        handle = type(kind, (Handle,), {"__del__": as_method(getattr(library(), kind + "_free"))})
        _kinds[kind] = handle
    return handle()


def raise_error(status: int, error: c_void_p) -> NoReturn:
    """Turns a failed call's error object into an exception, and frees it."""
    functions = library()
    message = functions.error_message(error).decode("utf-8", "replace")
    functions.error_free(error)
    error.value = None
    raise BY_CODE.get(status, ProofinferError)(message or functions.status_name(status).decode())


def call(function: Any, *arguments: Any) -> None:
    """Calls a function whose last parameter is the error, and raises what it reports."""
    error = c_void_p()
    status = function(*arguments, byref(error))
    del arguments  # a traceback keeps this frame, and with it a handle that close() shall free
    if status:
        raise_error(status, error)


def create(kind: str, function: Any, *arguments: Any) -> Handle:
    """Calls a function whose last parameters are a handle of this kind and the error."""
    handle, error = new_handle(kind), c_void_p()
    status = function(*arguments, byref(handle), byref(error))
    del arguments
    if status:
        raise_error(status, error)
    return handle


def read_bytes(function: Any, *arguments: Any, after: Tuple[Any, ...] = ()) -> bytes:
    """Calls a function that ends with (buffer, capacity, needed, *after, error), with a buffer as large as it takes."""
    error, needed = c_void_p(), c_size_t()
    capacity = 128
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        status = function(*arguments, buffer, capacity, byref(needed), *after, byref(error))
        if not status:
            return buffer.raw[: needed.value]
        if status != BUFFER:
            del arguments, after
            raise_error(status, error)
        library().error_free(error)
        capacity = needed.value


Self = TypeVar("Self", bound="Owner")


class Owner:
    """What every public object with a handle has: close(), `closed`, `with`. Use after close raises ClosedError."""

    __slots__ = ("__weakref__", "_held")

    _held: Optional[Handle]

    @property
    def _handle(self) -> Handle:
        # Arguments of a call use this instead of a local variable, so that a traceback does not keep the handle.
        held = self._held
        if held is None:
            raise ClosedError(f"this {type(self).__name__} is closed")
        return held

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._held is None

    def close(self) -> None:
        """Frees the object now or, while another thread is inside a call on it, when that call ends. More calls do nothing."""
        self._held = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<proofinfer.{type(self).__name__} {state} at {id(self):#x}>"


_INTEGER_BOUNDS = {"i64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1)}
_OPTION_KINDS = {
    "threads": "i64",
    "map": "i64",
    "verify": "i64",
    "isa": "text",
    "memory_limit_bytes": "u64",
    "context_length": "i64",
    "temperature": "f64",
    "top_p": "f64",
    "top_k": "i64",
    "typical_p": "f64",
    "min_p": "f64",
    "repetition_penalty": "f64",
    "frequency_penalty": "f64",
    "presence_penalty": "f64",
    "penalty_window": "i64",
    "seed": "u64",
    "max_generations": "i64",
    "prefill_chunk": "i64",
    "max_tokens": "i64",
    "stop_tokens": "tokens",
    "stop_strings": "texts",
    "logprobs": "i64",
}


def integer(name: str, value: Any, kind: str) -> int:
    """The value if it is an integer that the C type holds: ctypes would cut it off silently."""
    number = operator.index(value)
    lowest, highest = _INTEGER_BOUNDS[kind]
    if not lowest <= number <= highest:
        raise ArgumentError(f"{name} is {number}; expected {lowest} to {highest}")
    return number


def token_id(name: str, value: Any) -> int:
    """The value if an int32 holds it; whether the vocabulary does is the library's to say."""
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise ArgumentError(f"{name} is {number}; expected 32 bits")
    return number


def size(name: str, value: Any) -> int:
    """The value if a size_t holds it."""
    number = operator.index(value)
    if not 0 <= number < 1 << 8 * ctypes.sizeof(c_size_t):
        raise ArgumentError(f"{name} is {number}; expected 0 or more")
    return number


def token_array(tokens: Iterable[int]) -> "array[int]":
    """Any iterable of ids as int32."""
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"token ids expected, not {type(tokens).__name__}: encode text with a Tokenizer first")
    try:
        return array("i", tokens)
    except OverflowError:
        raise ArgumentError("a token is too large for a token id") from None


def path_bytes(path: Any) -> bytes:
    """A str or os.PathLike as the bytes that the system wants."""
    if isinstance(path, (bytes, bytearray, memoryview)):
        raise TypeError("a path is str or os.PathLike; from_bytes() takes a file's content")
    return os.fsencode(path)


def make_options(**values: Any) -> Optional[Handle]:
    """An options object with the values that are not None; None where all are."""
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return None
    functions = library()
    options = create("options", functions.options_create)
    for name, value in given.items():
        _set_option(functions, options, name, value)
    return options


def _set_option(functions: _ffi.Library, options: Handle, name: str, value: Any) -> None:
    kind = _OPTION_KINDS[name]
    key = name.encode()
    setter = getattr(functions, "options_set_" + kind)
    if kind == "text":
        text = value.encode()
        call(setter, options, key, len(key), text, len(text))
    elif kind == "tokens":
        ids = token_array(value)
        call(setter, options, key, len(key), ids.buffer_info()[0], len(ids))
    elif kind == "texts":
        texts = [text_bytes(text) for text in value]
        sizes = (c_size_t * len(texts))(*map(len, texts))
        call(setter, options, key, len(key), b"".join(texts), sizes, len(texts))
    elif kind == "f64":
        call(setter, options, key, len(key), float(value))
    else:
        call(setter, options, key, len(key), integer(name, value, kind))


def text_list(name: str, texts: Optional[Iterable[Union[str, bytes]]]) -> Optional[List[Union[str, bytes]]]:
    """The texts of an argument as a list. TypeError for one text, which would be taken apart."""
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} is a list of texts, not one")
    return None if texts is None else list(texts)


def text_bytes(text: Union[str, bytes]) -> bytes:
    """Text as UTF-8; bytes as they are. What the command line could not decode (surrogateescape) gets its bytes back."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8", "surrogateescape")
    raise TypeError(f"text is str or bytes, not {type(text).__name__}")
