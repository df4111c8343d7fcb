"""One exception class a status code of the library. Each derives from ProofinferError and, where Python has one that says the
same, from the built-in exception too."""

from __future__ import annotations

from typing import Dict, Type


class ProofinferError(Exception):
    """What every failure derives from. `code` is the status code, `name` its name in the C header, str() the message."""

    code: int = 0
    name: str = "PROOFINFER_E_?"


class ArgumentError(ProofinferError, ValueError):
    """An argument is out of its bounds; the message says which and what they are."""

    code = 1
    name = "PROOFINFER_E_ARGUMENT"


class OutOfMemoryError(ProofinferError, MemoryError):
    """Memory could not be had."""

    code = 2
    name = "PROOFINFER_E_MEMORY"


class LimitError(ProofinferError):
    """A memory limit that the caller set would be exceeded."""

    code = 3
    name = "PROOFINFER_E_LIMIT"


class IoError(ProofinferError, OSError):
    """The operating system refused: no such file, no permission, a read error."""

    code = 4
    name = "PROOFINFER_E_IO"


class UnrecognizedError(ProofinferError, ValueError):
    """The bytes are no format that the library knows; the message says what they look like."""

    code = 5
    name = "PROOFINFER_E_UNRECOGNIZED"


class TruncatedError(ProofinferError, ValueError):
    """The bytes end too early; the message names the first thing missing."""

    code = 6
    name = "PROOFINFER_E_TRUNCATED"


class FormatError(ProofinferError, ValueError):
    """A value in a file is invalid."""

    code = 7
    name = "PROOFINFER_E_FORMAT"


class UnsupportedError(ProofinferError):
    """A well-formed file asks for something that the library does not do."""

    code = 8
    name = "PROOFINFER_E_UNSUPPORTED"


class ContextError(ProofinferError):
    """The context, a session's room for positions, is full."""

    code = 9
    name = "PROOFINFER_E_CONTEXT"


class BusyError(ProofinferError, RuntimeError):
    """Another thread is inside this object."""

    code = 10
    name = "PROOFINFER_E_BUSY"


class CancelledError(ProofinferError):
    """The operation was cancelled through its Cancel; nothing changed."""

    code = 11
    name = "PROOFINFER_E_CANCELLED"


class BufferTooSmallError(ProofinferError):
    """A buffer is too small. The package grows its buffers and repeats the call, so this does not reach a caller."""

    code = 12
    name = "PROOFINFER_E_BUFFER"


class NotFiniteError(ProofinferError, ValueError):
    """Logits contain NaN or infinity where finite ones are needed."""

    code = 13
    name = "PROOFINFER_E_NOT_FINITE"


class StateError(ProofinferError, RuntimeError):
    """The object is not in the state that the call needs, for example logits that were not asked for."""

    code = 14
    name = "PROOFINFER_E_STATE"


class InternalError(ProofinferError, RuntimeError):
    """The library contradicts itself. Please report it."""

    code = 15
    name = "PROOFINFER_E_INTERNAL"


class ClosedError(ProofinferError, ValueError):
    """The object was closed. Raised by this package; the library never sees the call."""

    code = 14
    name = "PROOFINFER_E_STATE"


class LibraryError(ProofinferError, OSError):
    """The shared library cannot be found, cannot be loaded, or has another major version."""

    code = 8
    name = "PROOFINFER_E_UNSUPPORTED"


BY_CODE: Dict[int, Type[ProofinferError]] = {
    kind.code: kind
    for kind in (
        ArgumentError,
        OutOfMemoryError,
        LimitError,
        IoError,
        UnrecognizedError,
        TruncatedError,
        FormatError,
        UnsupportedError,
        ContextError,
        BusyError,
        CancelledError,
        BufferTooSmallError,
        NotFiniteError,
        StateError,
        InternalError,
    )
}
