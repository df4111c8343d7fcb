"""Tokenizers: text to token ids and back, and the stream that puts ids together to whole characters."""

from __future__ import annotations

import enum
import os
from array import array
from ctypes import byref, c_float, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Iterable, List, NamedTuple, Optional, Union

from . import _ffi
from ._cpython import Borrowed
from ._handle import (
    Owner,
    call,
    create,
    make_options,
    path_bytes,
    raise_error,
    read_bytes,
    text_bytes,
    token_array,
    token_id,
)
from ._library import library
from .model import Model


class PieceKind(enum.IntEnum):
    """What a piece is for. Those of a tokenizer.bin are all normal."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class TokenPiece(NamedTuple):
    """A piece of a vocabulary: any bytes, and its score."""

    data: bytes
    score: float


_INTEGERS = {
    name: number + 1
    for number, name in enumerate(("bos", "eos", "eot", "eom", "unknown", "padding", "add_bos", "add_eos", "add_space_prefix"))
}
_TEXTS = {"model": 1, "pre_tokenizer": 2}


def _vocab_size(source: Union[Model, int]) -> int:
    return source.vocab_size if isinstance(source, Model) else token_id("vocab_size", source)


class Tokenizer(Owner):
    """A vocabulary: a GGUF file's, or llama2.c's tokenizer.bin. Immutable; any number of threads may share it.

    vocab_size: how many pieces to read, a number or the model whose vocabulary it is. A tokenizer.bin has no count of
    its own; of a GGUF file 0 takes all.
    """

    __slots__ = ()

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        vocab_size: Union[Model, int] = 0,
        *,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        name, count = path_bytes(path), _vocab_size(vocab_size)
        options = make_options(memory_limit_bytes=memory_limit_bytes)
        self._held = create("tokenizer", library().tokenizer_open, name, len(name), count, options)

    @classmethod
    def from_bytes(cls, data: Any, vocab_size: Union[Model, int] = 0, *, memory_limit_bytes: Optional[int] = None) -> "Tokenizer":
        """The same from a file's bytes: any object with the buffer protocol. It is copied."""
        count = _vocab_size(vocab_size)
        options = make_options(memory_limit_bytes=memory_limit_bytes)
        tokenizer = cls.__new__(cls)
        tokenizer._held = None
        with Borrowed(data) as memory:
            tokenizer._held = create(
                "tokenizer", library().tokenizer_open_memory, memory.address, memory.size_bytes, count, options
            )
        return tokenizer

    @property
    def vocab_size(self) -> int:
        """The number of pieces."""
        return int(library().tokenizer_vocab_size(self._handle))

    def __len__(self) -> int:
        return self.vocab_size

    def _get(self, name: str) -> int:
        value = c_int64()
        call(library().tokenizer_get_i64, self._handle, _INTEGERS[name], byref(value))
        return value.value

    @property
    def bos(self) -> int:
        """The id of the beginning of a text; -1 for this and the next ones: none."""
        return self._get("bos")

    @property
    def eos(self) -> int:
        """The id of the end of a text."""
        return self._get("eos")

    @property
    def eot(self) -> int:
        """The id of the end of a turn."""
        return self._get("eot")

    @property
    def eom(self) -> int:
        """The id of the end of a message."""
        return self._get("eom")

    @property
    def unknown(self) -> int:
        """The id for what has no piece."""
        return self._get("unknown")

    @property
    def padding(self) -> int:
        """The id that fills up."""
        return self._get("padding")

    @property
    def add_bos(self) -> bool:
        """Whether the model expects texts to begin with BOS."""
        return self._get("add_bos") == 1

    @property
    def add_eos(self) -> bool:
        """Whether the model expects texts to end with EOS."""
        return self._get("add_eos") == 1

    @property
    def add_space_prefix(self) -> bool:
        """Whether encoding puts a space before a text."""
        return self._get("add_space_prefix") == 1

    def _text(self, name: str) -> str:
        return str(library().tokenizer_get_text(self._handle, _TEXTS[name]).decode())

    @property
    def model(self) -> str:
        """The kind of vocabulary: "llama2.c", "llama" or "gpt2"."""
        return self._text("model")

    @property
    def pre_tokenizer(self) -> str:
        """How a text is cut into words, as the file names it; empty but for "gpt2"."""
        return self._text("pre_tokenizer")

    def piece(self, token: int) -> TokenPiece:
        """The piece of an id: what it is in a text, and its score."""
        score = c_float()
        data = read_bytes(library().tokenizer_piece, self._handle, token_id("token", token), after=(byref(score),))
        return TokenPiece(data, score.value)

    def piece_kind(self, token: int) -> PieceKind:
        """What the piece of an id is for."""
        kind = c_int32()
        call(library().tokenizer_piece_kind, self._handle, token_id("token", token), byref(kind))
        return PieceKind(kind.value)

    def encode(
        self, text: Union[str, bytes], *, bos: Optional[bool] = None, eos: Optional[bool] = None, special: bool = False
    ) -> List[int]:
        """Text to token ids. bos, eos: put that id first, last; default: as the file says (a tokenizer.bin: BOS).
        special: control pieces spelled in the text become their ids; otherwise they stay text.
        """
        data = text_bytes(text)
        flags = _ffi.ENCODE_SPECIAL if special else 0
        flags |= _ffi.ENCODE_BOS if (self.add_bos if bos is None else bos) else 0
        flags |= _ffi.ENCODE_EOS if (self.add_eos if eos is None else eos) else 0
        # Never more ids than this, so one call does.
        ids = array("i", bytes(4 * (2 * len(data) + 3)))
        needed, error = c_size_t(), c_void_p()
        status = library().tokenizer_encode(
            self._handle, data, len(data), flags, ids.buffer_info()[0], len(ids), byref(needed), byref(error)
        )
        if status:
            raise_error(status, error)
        return ids[: needed.value].tolist()

    def decode(self, tokens: Iterable[int], *, previous: Optional[int] = None) -> str:
        """Token ids to text; bytes that are no UTF-8 become U+FFFD.

        previous: the id before the first one. Without it a leading BOS counts as that, so that decode(encode(text))
        is the text.
        """
        ids = token_array(tokens)
        if previous is None and len(ids) > 0 and ids[0] == self.bos:
            previous = ids.pop(0)
        with self.stream(previous) as stream:
            return "".join([stream.push(token) for token in ids]) + stream.flush()

    def decode_bytes(self, token: int, *, previous: Optional[int] = None, spelled: bool = False) -> bytes:
        """The bytes of one id after the id `previous`; they may be part of a character. spelled: the
        piece itself, "<0x0A>" instead of the byte.
        """
        before = -1 if previous is None else token_id("previous", previous)
        flags = _ffi.DECODE_SPELLED if spelled else 0
        return read_bytes(library().tokenizer_decode, self._handle, before, token_id("token", token), flags)

    def stream(self, previous: Optional[int] = None) -> "Stream":
        """A stream that turns ids into whole characters. previous: the id before the first one pushed."""
        return Stream(self, previous)


class Stream(Owner):
    """Token ids to whole characters. Bytes of a character that is not complete are held back. One thread at a time."""

    __slots__ = ()

    def __init__(self, tokenizer: Tokenizer, previous: Optional[int] = None) -> None:
        self._held = None
        before = -1 if previous is None else token_id("previous", previous)
        self._held = create("stream", library().stream_create, tokenizer._handle, before)

    def push(self, token: int) -> str:
        """The text that this id completes; may be empty."""
        return read_bytes(library().stream_push, self._handle, token_id("token", token)).decode()

    def flush(self) -> str:
        """The held-back rest: empty, or U+FFFD for an incomplete character. The stream is then as new."""
        return read_bytes(library().stream_flush, self._handle).decode()
