"""Tokenizers: text to token ids and back, and the stream that puts ids together to whole characters."""

from __future__ import annotations

import os
from array import array
from ctypes import byref, c_float, c_size_t, c_void_p
from typing import Any, Iterable, List, NamedTuple, Optional, Union

from . import _ffi
from ._cpython import Borrowed
from ._handle import (
    Owner,
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


class TokenPiece(NamedTuple):
    """A piece of a vocabulary as the file has it: any bytes, and its score."""

    data: bytes
    score: float


def _vocab_size(source: Union[Model, int]) -> int:
    return source.vocab_size if isinstance(source, Model) else token_id("vocab_size", source)


class Tokenizer(Owner):
    """A vocabulary in llama2.c's tokenizer.bin format. Immutable; any number of threads may share it.

    vocab_size: how many pieces to read (the file has no count): a number, or the model whose vocabulary it is.
    """

    __slots__ = ()

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        vocab_size: Union[Model, int],
        *,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        name, count = path_bytes(path), _vocab_size(vocab_size)
        options = make_options(memory_limit_bytes=memory_limit_bytes)
        self._held = create("tokenizer", library().tokenizer_open, name, len(name), count, options)

    @classmethod
    def from_bytes(cls, data: Any, vocab_size: Union[Model, int], *, memory_limit_bytes: Optional[int] = None) -> "Tokenizer":
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

    @property
    def bos(self) -> int:
        """The id of the beginning of a text."""
        return int(library().tokenizer_bos(self._handle))

    @property
    def eos(self) -> int:
        """The id of the end of a text."""
        return int(library().tokenizer_eos(self._handle))

    def piece(self, token: int) -> TokenPiece:
        """The piece of an id exactly as the file has it, and its score."""
        score = c_float()
        data = read_bytes(library().tokenizer_piece, self._handle, token_id("token", token), after=(byref(score),))
        return TokenPiece(data, score.value)

    def encode(self, text: Union[str, bytes], *, bos: bool = True, eos: bool = False) -> List[int]:
        """Text to token ids. bos, eos: put that id first, last. Special pieces spelled in the text stay text."""
        data = text_bytes(text)
        flags = (_ffi.ENCODE_BOS if bos else 0) | (_ffi.ENCODE_EOS if eos else 0)
        # Never more ids than bytes and three, so one call does.
        ids = array("i", bytes(4 * (len(data) + 3)))
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
        """The bytes of one id after the id `previous`; they may be part of a character. spelled: leave "<0x0A>" as it is."""
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
