"""Llama-family language models on a CPU, every output bit specified: libproofinfer for Python.

with Model("stories260K.bin") as model, Tokenizer("tok512.bin", model) as tokenizer, model.session() as session:
    for piece in session.generate("Once upon a time", tokenizer):
        print(piece.text, end="")
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

from ._handle import call
from ._library import library, load
from .cancel import Cancel
from .chat import Message, chat_stop_tokens, chat_template, chat_templates, encode_chat
from .errors import (
    ArgumentError,
    BufferTooSmallError,
    BusyError,
    CancelledError,
    ClosedError,
    ContextError,
    FormatError,
    InternalError,
    IoError,
    LibraryError,
    LimitError,
    NotFiniteError,
    OutOfMemoryError,
    ProofinferError,
    StateError,
    TruncatedError,
    UnrecognizedError,
    UnsupportedError,
)
from .generation import Generation, Logprobs, Piece, StopReason
from .model import Model, Tensor, convert, perplexity
from .sampler import Sampler, TokenLogprob, logprobs, top_logprobs
from .scheduler import Event, Scheduler
from .session import Batch, Session
from .tokenizer import PieceKind, Stream, Tokenizer, TokenPiece

__version__ = "1.0.0"


class Isa(NamedTuple):
    """A kernel set compiled into the library, and whether this machine can run it."""

    name: str
    available: bool


class Option(NamedTuple):
    """A named setting of the library. Texts are empty where the type has none."""

    name: str
    type: str
    default: str
    lowest: str
    highest: str
    scope: str


def version() -> str:
    """The loaded library's version, for example "1.0.0"."""
    return str(library().version_text().decode())


def build() -> str:
    """How the loaded library was built: compiler, architecture, kernel sets."""
    return str(library().build_text().decode())


def isas() -> Tuple[Isa, ...]:
    """The kernel sets compiled into the library, slowest first. All give the same bits."""
    functions = library()
    return tuple(
        Isa(functions.isa_name(index).decode(), bool(functions.isa_available(index))) for index in range(functions.isa_count())
    )


def options() -> Tuple[Option, ...]:
    """The library's named settings: the keyword arguments of the classes here."""
    from ._ffi import OPTION_TYPES

    functions = library()
    return tuple(
        Option(
            functions.option_name(index).decode(),
            OPTION_TYPES.get(functions.option_type(index), "?"),
            functions.option_default(index).decode(),
            functions.option_lowest(index).decode(),
            functions.option_highest(index).decode(),
            functions.option_scope(index).decode(),
        )
        for index in range(functions.option_count())
    )


def selftest() -> None:
    """Compares a built-in model's logits with built-in figures on every kernel set that this CPU has. InternalError
    if they differ.
    """
    call(library().selftest)


__all__ = [
    "ArgumentError",
    "Batch",
    "BufferTooSmallError",
    "BusyError",
    "Cancel",
    "CancelledError",
    "ClosedError",
    "ContextError",
    "Event",
    "FormatError",
    "Generation",
    "InternalError",
    "IoError",
    "Isa",
    "LibraryError",
    "LimitError",
    "Logprobs",
    "Message",
    "Model",
    "NotFiniteError",
    "Option",
    "OutOfMemoryError",
    "Piece",
    "PieceKind",
    "ProofinferError",
    "Sampler",
    "Scheduler",
    "Session",
    "StateError",
    "StopReason",
    "Stream",
    "Tensor",
    "TokenLogprob",
    "TokenPiece",
    "Tokenizer",
    "TruncatedError",
    "UnrecognizedError",
    "UnsupportedError",
    "build",
    "chat_stop_tokens",
    "chat_template",
    "chat_templates",
    "convert",
    "encode_chat",
    "isas",
    "load",
    "logprobs",
    "options",
    "perplexity",
    "selftest",
    "top_logprobs",
    "version",
]
