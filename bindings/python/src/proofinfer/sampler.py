"""Samplers: logits to a token id, with their random state."""

from __future__ import annotations

from array import array
from ctypes import byref, c_int32, c_void_p
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Union

from ._cpython import Borrowed
from ._handle import Owner, call, create, integer, make_options, raise_error, size, token_array, token_id
from ._library import library
from .errors import ArgumentError
from .model import Model


class Sampler(Owner):
    """Picks tokens from logits. One thread at a time.

    vocab_size: the number of logits, or the model. temperature: 0 (default) takes the largest; else logits are
    divided by it. top_p: the nucleus, in (0, 1); 0 and 1 turn it off; default 0.9. top_k: only the k largest; 0
    (default) is off. typical_p: locally typical, in (0, 1); default off. min_p: only those at least this share of the
    most probable; 0 (default) is off. repetition_penalty (1: off), frequency_penalty and presence_penalty (0: off):
    against the last penalty_window (64) tokens, those that sample() picked and those that accept() was told. seed:
    the generator's first state; default 1.
    """

    __slots__ = ()

    def __init__(
        self,
        vocab_size: Union[Model, int],
        *,
        temperature: Optional[float] = None,
        top_p: Optional[float] = None,
        top_k: Optional[int] = None,
        typical_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        frequency_penalty: Optional[float] = None,
        presence_penalty: Optional[float] = None,
        penalty_window: Optional[int] = None,
        seed: Optional[int] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        count = vocab_size.vocab_size if isinstance(vocab_size, Model) else token_id("vocab_size", vocab_size)
        options = make_options(
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            typical_p=typical_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            frequency_penalty=frequency_penalty,
            presence_penalty=presence_penalty,
            penalty_window=penalty_window,
            seed=seed,
            memory_limit_bytes=memory_limit_bytes,
        )
        self._held = create("sampler", library().sampler_create, count, options)

    def sample(self, logits: Any) -> int:
        """Picks a token. logits: `vocab_size` numbers; a buffer of float32 (Session.logits(), array("f"), numpy) is
        not copied.
        """
        token, error = c_int32(), c_void_p()
        with Borrowed(_floats(logits)) as memory:
            status = library().sampler_sample(self._handle, memory.address, memory.size_bytes // 4, byref(token), byref(error))
        if status:
            raise_error(status, error)
        return token.value

    def accept(self, tokens: Iterable[int]) -> None:
        """Lets tokens of another origin, a prompt say, join the window of the penalties, oldest first."""
        ids = token_array(tokens)
        call(library().sampler_accept, self._handle, ids.buffer_info()[0], len(ids))

    def set_bias(self, biases: Mapping[int, float]) -> None:
        """Adds numbers to the logits of some tokens, in place of all biases of before: {token: bias}."""
        ids, values = token_array(biases), array("f", biases.values())
        call(library().sampler_set_bias, self._handle, ids.buffer_info()[0], values.buffer_info()[0], len(ids))

    def set_banned(self, tokens: Iterable[int]) -> None:
        """These tokens are never picked, in place of those banned before."""
        ids = token_array(tokens)
        call(library().sampler_set_banned, self._handle, ids.buffer_info()[0], len(ids))

    def set_mask(self, mask: Any) -> None:
        """Only the tokens of the mask may be picked, until another one takes its place: before each token for a
        grammar. mask: a buffer of (vocab_size + 31) // 32 words of 32 bits (array("I"), numpy; not copied), bit i % 32
        of word i // 32 for id i; or None: all may be picked.
        """
        if mask is None:
            return call(library().sampler_set_mask, self._handle, None, 0)
        with Borrowed(mask) as memory:
            if memory.size_bytes % 4:
                raise TypeError(f"a mask has words of 4 bytes; found {memory.size_bytes} bytes")
            return call(library().sampler_set_mask, self._handle, memory.address, memory.size_bytes // 4)

    def reseed(self, seed: int) -> None:
        """Sets the generator's state, as `seed` does at the beginning, and empties the window of the penalties."""
        call(library().sampler_reseed, self._handle, integer("seed", seed, "u64"))


class TokenLogprob(NamedTuple):
    """A token and the logarithm of its probability."""

    token: int
    logprob: float


def logprobs(logits: Any, tokens: Iterable[int]) -> List[float]:
    """The logarithms of the probabilities of tokens by the model's own distribution: the softmax of the logits as
    they are. logits: as for Sampler.sample().
    """
    ids = token_array(tokens)
    values = array("f", bytes(4 * len(ids)))
    with Borrowed(_floats(logits)) as memory:
        call(
            library().logits_logprobs,
            memory.address,
            memory.size_bytes // 4,
            ids.buffer_info()[0],
            len(ids),
            values.buffer_info()[0],
        )
    return values.tolist()


def top_logprobs(logits: Any, count: int) -> List[TokenLogprob]:
    """The `count` most probable tokens by the same, most probable first."""
    number = size("count", count)
    with Borrowed(_floats(logits)) as memory:
        if number > memory.size_bytes // 4:
            raise ArgumentError(f"count is {number}; there are {memory.size_bytes // 4} logits")
        ids, values = array("i", bytes(4 * number)), array("f", bytes(4 * number))
        call(
            library().logits_top,
            memory.address,
            memory.size_bytes // 4,
            number,
            ids.buffer_info()[0],
            values.buffer_info()[0],
        )
    return [TokenLogprob(*pair) for pair in zip(ids, values)]


def _floats(logits: Any) -> Any:
    return logits if _is_float32(logits) else array("f", logits)


def _is_float32(logits: Any) -> bool:
    try:
        with memoryview(logits) as view:
            return view.format in ("f", "<f", "=f", "@f") and view.c_contiguous
    except TypeError:
        return False
