"""Scheduler: many generations of one model, each step one pass over the weights."""

from __future__ import annotations

from ctypes import byref, c_int32, c_size_t, c_uint64, c_void_p, create_string_buffer
from typing import Dict, Iterable, Iterator, NamedTuple, Optional, Union

from . import _interrupt
from ._handle import BUFFER, Owner, call, create, integer, make_options, raise_error, text_list, token_array
from ._library import library
from .cancel import Cancel
from .errors import ProofinferError
from .generation import Generation, StopReason
from .model import Model
from .tokenizer import Tokenizer

_STOP_REASONS = {reason.value: reason for reason in StopReason}


class Event(NamedTuple):
    """What came of one generation: a token and the whole characters that it completes, its end, or both. error: why it
    ended by failing.
    """

    id: int
    token: Optional[int]
    text: str
    stop_reason: Optional[StopReason]
    error: Optional[ProofinferError]


class Scheduler(Owner):
    """Advances many generations together; the tokens and text of each are those of running alone.

    One thread turns the wheel: `for event in scheduler` steps and yields until nothing is left; or step() and next() by
    hand. Any thread may submit and cancel meanwhile. max_generations: most at a time; default 64. prefill_chunk: most
    prompt tokens that a step evaluates beside what decodes; default 32. memory_limit_bytes: for the scheduler with all
    that is submitted; LimitError tells what is needed and available.
    """

    __slots__ = ("_added", "_tokenizer")

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        *,
        max_generations: Optional[int] = None,
        prefill_chunk: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        self._tokenizer = tokenizer
        self._added: Dict[int, Generation] = {}  # those of add() that have not left
        options = make_options(
            max_generations=max_generations, prefill_chunk=prefill_chunk, isa=isa, memory_limit_bytes=memory_limit_bytes
        )
        self._held = create("scheduler", library().scheduler_create, model._handle, tokenizer._handle, options)

    def submit(
        self,
        prompt: Union[str, bytes, Iterable[int]],
        *,
        context_length: Optional[int] = None,
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
        max_tokens: Optional[int] = None,
        stop_tokens: Optional[Iterable[int]] = None,
        stop_strings: Optional[Iterable[Union[str, bytes]]] = None,
    ) -> int:
        """Hands in a prompt: text, which is encoded with BOS, or token ids. The number that its events carry."""
        if isinstance(prompt, (str, bytes)):
            prompt = self._tokenizer.encode(prompt, bos=True)
        ids = token_array(prompt)
        options = make_options(
            context_length=context_length,
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
            max_tokens=max_tokens,
            stop_tokens=stop_tokens,
            stop_strings=text_list("stop_strings", stop_strings),
        )
        number = c_uint64()
        call(library().scheduler_submit, self._handle, ids.buffer_info()[0], len(ids), options, byref(number))
        return number.value

    def add(self, generation: Generation) -> int:
        """The same with a Generation of yours, which continues its session; it can be used between steps as always. A
        step moves its session, as the generation's own would: views of the session's logits are released then.
        """
        if not isinstance(generation, Generation):
            raise TypeError(f"generation is a {type(generation).__name__}; expected a Generation")
        number = c_uint64()
        call(library().scheduler_add, self._handle, generation._handle, byref(number))
        self._added[number.value] = generation
        return number.value

    def cancel(self, number: int) -> None:
        """Takes a generation out: its next event is its end, StopReason.CANCELLED. One that has ended is left alone."""
        call(library().scheduler_cancel, self._handle, integer("number", number, "u64"))

    def step(self, cancel: Optional[Cancel] = None) -> int:
        """One pass over the weights. How many tokens were evaluated; 0: each generation waits for its events to be taken."""

        def work(polled: Optional[Cancel]) -> int:
            rows = c_size_t()
            entered = [generation._session._views for generation in list(self._added.values())]
            try:
                for views in entered:
                    views.enter(self)
                call(library().scheduler_step, self._handle, None if polled is None else polled._handle, byref(rows))
            finally:
                for views in entered:
                    views.leave(self)
            return rows.value

        return _interrupt.run(work, cancel)

    def next(self, only: int = 0) -> Optional[Event]:
        """An event of the generation `only` (0: of any, in turns), if there is one."""
        number, token, reason, needed, error = c_uint64(), c_int32(-1), c_int32(), c_size_t(), c_void_p()
        capacity, wanted = 256, integer("only", only, "u64")
        while True:
            text = create_string_buffer(capacity)
            status = library().scheduler_next(
                self._handle, wanted, byref(number), byref(token), text, capacity, byref(needed), byref(reason), byref(error)
            )
            if status != BUFFER:
                break
            library().error_free(error)
            capacity = needed.value
        failure = None
        if status:
            try:
                raise_error(status, error)
            except ProofinferError as problem:
                if not number.value:
                    raise
                failure = problem.with_traceback(None)
        if not number.value:
            return None
        found, stop_reason = None if token.value < 0 else token.value, _STOP_REASONS.get(reason.value)
        if stop_reason is not None or failure is not None:
            generation = self._added.pop(number.value, None)
            # A cancelled one can go on by itself.
            if generation is not None and stop_reason not in (None, StopReason.CANCELLED):
                generation._stop_reason, generation._ended = stop_reason, True
        return Event(number.value, found, text.raw[: needed.value].decode(), stop_reason, failure)

    def __iter__(self) -> Iterator[Event]:
        """Steps and yields until nothing is left; what is submitted meanwhile joins in."""
        while True:
            event = self.next()
            if event is not None:
                yield event
            elif self.count == 0:
                return
            else:
                self.step()

    @property
    def count(self) -> int:
        """How many generations have not left."""
        return int(library().scheduler_count(self._handle))

    @property
    def memory_bytes(self) -> int:
        """All memory that the scheduler holds."""
        return int(library().scheduler_memory_bytes(self._handle))
