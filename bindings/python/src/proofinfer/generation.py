"""Generation: a prompt, and then one token and its text at a time, as an iterator and as an async iterator."""

from __future__ import annotations

import ctypes
import enum
from ctypes import byref, c_float, c_int32, c_size_t, c_void_p
from time import perf_counter
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Union

from . import _interrupt
from ._handle import BUFFER, Owner, call, create, make_options, raise_error, text_list, token_array, token_id
from ._library import library
from .cancel import Cancel
from .sampler import Sampler, TokenLogprob
from .session import Session
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from concurrent.futures import Executor


class StopReason(enum.Enum):
    """Why a generation ended."""

    TOKEN = 1
    """A stop token came up; it is reported, gives no text, and is not appended."""
    LENGTH = 2
    """max_tokens reached."""
    CONTEXT = 3
    """The session has no room for another token."""
    STRING = 4
    """A stop string is complete; Generation.stop_string says which. Its last token is not appended."""
    CANCELLED = 5
    """Scheduler.cancel took it out."""


MOST_LOGPROBS = 1024

# Makes a named tuple without its Python-level constructor.
_new_tuple = tuple.__new__
_STOP_REASONS = {reason.value: reason for reason in StopReason}


class Piece(NamedTuple):
    """One generated token: its id, the whole characters that it completes (maybe none), and, with the last one, why
    it is the last.
    """

    token: int
    text: str
    stop_reason: Optional[StopReason]


class Logprobs(NamedTuple):
    """The log-probability of a generated token, and the most probable tokens in its place. For a token that was forced
    where the logits are not finite the first is NaN and the second empty.
    """

    logprob: float
    top: List[TokenLogprob]


class _Call:
    """The out-parameters of proofinfer_generation_next, made once and used by one call at a time."""

    __slots__ = (
        "capacity",
        "error",
        "error_ref",
        "needed",
        "needed_ref",
        "reason",
        "reason_ref",
        "text",
        "token",
        "token_ref",
        "view",
    )

    def __init__(self, capacity: int) -> None:
        self.token, self.needed, self.reason, self.error = c_int32(-1), c_size_t(), c_int32(), c_void_p()
        self.token_ref, self.needed_ref = byref(self.token), byref(self.needed)
        self.reason_ref, self.error_ref = byref(self.reason), byref(self.error)
        self.capacity = capacity
        self.text = ctypes.create_string_buffer(capacity)
        self.view = memoryview(self.text)


class Generation(Owner):
    """Continues a session with a prompt, and yields a Piece at a time: `for piece in generation`, `async for piece in
    generation`.

    prompt: text, which is encoded with BOS where the session is empty; or token ids; empty to go on from the
    session's last logits. sampler: what picks the tokens; without it one is made of temperature to seed, which are the
    Sampler's. max_tokens: most tokens to generate; default: until a stop token or the end of the context. stop_tokens:
    ids that end it; default: the tokenizer's BOS, as llama2.c has it. stop_strings: texts that end it and are cut off;
    what may still become one is held back. logprobs: how many of the most probable tokens logprobs() is to tell.
    cancel: stops the call that runs, prompt evaluation included, with CancelledError.

    The prompt is evaluated by the first step. An interrupted step (Ctrl-C, Cancel, a cancelled task) loses nothing:
    iterate on to continue. It keeps what it uses alive, so session, tokenizer and sampler may be closed before it.
    """

    __slots__ = ("_calls", "_cancel", "_ended", "_kept", "_next", "_session", "_started", "_stop_reason", "_stop_strings")

    def __init__(
        self,
        session: Session,
        prompt: Union[str, bytes, Iterable[int]],
        tokenizer: Tokenizer,
        sampler: Optional[Sampler] = None,
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
        max_tokens: Optional[int] = None,
        stop_tokens: Optional[Iterable[int]] = None,
        stop_strings: Optional[Iterable[Union[str, bytes]]] = None,
        logprobs: Optional[int] = None,
        cancel: Optional[Cancel] = None,
    ) -> None:
        self._held = None
        shape: Dict[str, Any] = {
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
            "typical_p": typical_p,
            "min_p": min_p,
            "repetition_penalty": repetition_penalty,
            "frequency_penalty": frequency_penalty,
            "presence_penalty": presence_penalty,
            "penalty_window": penalty_window,
            "seed": seed,
        }
        if sampler is None:
            sampler = Sampler(session.vocab_size, **shape)
        elif any(value is not None for value in shape.values()):
            given = ", ".join(name for name, value in shape.items() if value is not None)
            raise TypeError(f"these belong to the sampler, give them or a sampler: {given}")
        if isinstance(prompt, (str, bytes)):
            prompt = tokenizer.encode(prompt, bos=session.position == 0)
        ids = token_array(prompt)
        strings = text_list("stop_strings", stop_strings)
        options = make_options(max_tokens=max_tokens, stop_tokens=stop_tokens, stop_strings=strings, logprobs=logprobs)
        self._stop_strings = strings or []
        self._session = session
        self._cancel = cancel
        self._stop_reason: Optional[StopReason] = None
        self._ended = False
        self._started = False
        self._calls: List[_Call] = []
        self._kept: List[Piece] = []  # pieces of steps that ended while their caller was interrupted
        self._next = library().generation_next
        self._held = create(
            "generation",
            library().generation_create,
            session._handle,
            tokenizer._handle,
            sampler._handle,
            ids.buffer_info()[0],
            len(ids),
            options,
        )

    @property
    def stop_reason(self) -> Optional[StopReason]:
        """Why the generation ended; None while it has not."""
        return self._stop_reason

    @property
    def stop_string(self) -> Union[str, bytes, None]:
        """The one of stop_strings that ended the generation; None if none did."""
        if self._stop_reason is not StopReason.STRING:
            return None
        index = c_size_t()
        call(library().generation_stop_string, self._handle, byref(index))
        return self._stop_strings[index.value]

    def logprobs(self) -> Logprobs:
        """The log-probabilities of the last step's token by the model's own distribution (see
        proofinfer.top_logprobs()). StateError unless the generation was made with logprobs and has yielded a token.
        """
        own, needed = c_float(), c_size_t()
        ids, values = (c_int32 * MOST_LOGPROBS)(), (c_float * MOST_LOGPROBS)()
        call(library().generation_logprobs, self._handle, byref(own), ids, values, MOST_LOGPROBS, byref(needed))
        return Logprobs(own.value, [TokenLogprob(ids[i], values[i]) for i in range(needed.value)])

    def force(self, token: int) -> None:
        """Makes the next step yield this id instead of a sampled one; no random number is drawn for it."""
        call(library().generation_force, self._handle, token_id("token", token))

    def text(self) -> str:
        """All the text from here to the end."""
        return "".join([piece.text for piece in self])

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> Piece:
        if self._kept:
            return self._kept.pop()
        if self._ended and self._held is not None:
            raise StopIteration
        session = self._session
        # The steps behind the prompt are about as long as each other.
        if self._started and session._step_seconds < _interrupt.SHORT_SECONDS:
            piece = self._step(self._cancel)
        else:
            piece = _interrupt.run(self._step, self._cancel, self._keep)
        if piece is None:
            raise StopIteration
        return piece

    def __aiter__(self) -> "Generation":
        return self

    async def __anext__(self) -> Piece:
        piece = await self.next_async()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def next_async(self, executor: "Optional[Executor]" = None) -> Optional[Piece]:
        """The next piece, made on a thread of the executor (default: the event loop's); None at the end. Cancelling
        the task stops the step; nothing is lost.
        """
        if self._kept:
            return self._kept.pop()
        if self._ended and self._held is not None:
            return None
        return await _interrupt.run_async(self._step, self._cancel, executor, self._keep)

    def _keep(self, piece: Optional[Piece]) -> None:
        if piece is not None:
            self._kept.append(piece)

    def _step(self, cancel: Optional[Cancel]) -> Optional[Piece]:
        """One call of proofinfer_generation_next. Runs once a token, so it is kept lean: no allocation that can be spared, and
        what Views.enter() and leave() do stands in line."""
        out = self._calls.pop() if self._calls else _Call(256)
        mover, session = out, self._session
        views = session._views
        out.token.value = -1
        try:
            views.movers.add(mover)
            if views.views:
                views.expire()
            begin = perf_counter()
            while True:
                status = self._next(
                    self._handle,
                    None if cancel is None else cancel._handle,
                    out.token_ref,
                    out.text,
                    out.capacity,
                    out.needed_ref,
                    out.reason_ref,
                    out.error_ref,
                )
                if not status:
                    break
                out = _larger(out, status)
            if self._started:
                session._step_seconds = perf_counter() - begin
            piece = self._take(out)
            self._calls.append(out)
            views.movers.discard(mover)
            return piece
        except BaseException:
            views.movers.discard(mover)
            # A signal handler's exception may come right after the call has ended well.
            if out.token.value >= 0:
                self._keep(self._take(out))
            raise

    def _take(self, out: _Call) -> Optional[Piece]:
        token, number = out.token.value, out.reason.value
        reason = None
        if number:
            reason = self._stop_reason = _STOP_REASONS[number]
            self._ended = True
        self._started = True
        if token < 0:
            return None
        return _new_tuple(Piece, (token, str(out.view[: out.needed.value], "utf-8"), reason))


def _larger(out: _Call, status: int) -> _Call:
    if status != BUFFER:
        raise_error(status, out.error)
    library().error_free(out.error)
    return _Call(out.needed.value)
