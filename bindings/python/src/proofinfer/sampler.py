"""Samplers: logits to a token id, with their random state."""

from __future__ import annotations

from array import array
from ctypes import byref, c_int32, c_void_p
from typing import Any, Optional, Union

from ._cpython import Borrowed
from ._handle import Owner, call, create, integer, make_options, raise_error, token_id
from ._library import library
from .model import Model


class Sampler(Owner):
    """Picks tokens from logits. One thread at a time.

    vocab_size: the number of logits, or the model. temperature: 0 (default) takes the largest; else logits are
    divided by it. top_p: the nucleus, in (0, 1); 0 and 1 turn it off; default 0.9. seed: the generator's first state;
    default 1.
    """

    __slots__ = ()

    def __init__(
        self,
        vocab_size: Union[Model, int],
        *,
        temperature: Optional[float] = None,
        top_p: Optional[float] = None,
        seed: Optional[int] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        count = vocab_size.vocab_size if isinstance(vocab_size, Model) else token_id("vocab_size", vocab_size)
        options = make_options(temperature=temperature, top_p=top_p, seed=seed, memory_limit_bytes=memory_limit_bytes)
        self._held = create("sampler", library().sampler_create, count, options)

    def sample(self, logits: Any) -> int:
        """Picks a token. logits: `vocab_size` numbers; a buffer of float32 (Session.logits(), array("f"), numpy) is
        not copied.
        """
        values = logits if _is_float32(logits) else array("f", logits)
        token, error = c_int32(), c_void_p()
        with Borrowed(values) as memory:
            status = library().sampler_sample(self._handle, memory.address, memory.size_bytes // 4, byref(token), byref(error))
        if status:
            raise_error(status, error)
        return token.value

    def reseed(self, seed: int) -> None:
        """Sets the generator's state, as `seed` does at the beginning."""
        call(library().sampler_reseed, self._handle, integer("seed", seed, "u64"))


def _is_float32(logits: Any) -> bool:
    try:
        with memoryview(logits) as view:
            return view.format in ("f", "<f", "=f", "@f") and view.c_contiguous
    except TypeError:
        return False
