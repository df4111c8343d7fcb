"""Sessions: one sequence of tokens each, with its logits; and batches of them."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from array import array
from ctypes import byref, c_float, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Set, Tuple, Union

from . import _ffi, _interrupt
from ._cpython import Borrowed
from ._handle import Owner, call, create, make_options, raise_error, read_bytes, size, token_array, token_id
from ._library import library
from .cancel import Cancel
from .errors import ArgumentError, BusyError, ContextError
from .model import Model

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .chat import Message
    from .generation import Generation
    from .sampler import Sampler
    from .tokenizer import Tokenizer


class Views:
    """The zero-copy logits handed out by one session, and who is about to overwrite them.

    A mover (append, rewind, a generation's step, a batch) announces itself with enter(): that releases every view handed
    out, so that using one afterwards is a ValueError. What else still exports the memory (a slice, a numpy array) cannot be
    released: then enter() raises BufferError and nothing moves. While a mover is inside, no view is handed out.

    A mover writes `movers` before it reads `views`, and who hands out a view writes `views` before it reads `movers`: one of
    the two always sees the other, and a mover that sees no view takes no lock.
    """

    __slots__ = ("lock", "movers", "views")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.movers: Set[object] = set()
        # (what every view of the memory keeps, the view handed out); None stands for one that is being made.
        self.views: List[Optional[Tuple["weakref.ref[Any]", "weakref.ref[memoryview]"]]] = []

    def enter(self, mover: object) -> None:
        """Announces a mover. Stands inside `try`, with leave() in `finally`: that is right also if this was interrupted."""
        self.movers.add(mover)
        if self.views:
            self.expire()

    def leave(self, mover: object) -> None:
        """The mover is done, or never began."""
        self.movers.discard(mover)

    def expire(self) -> None:
        """Releases all views; BufferError if some cannot be."""
        with self.lock:
            self.release()
            if self.views:
                raise BufferError(
                    f"{len(self.views)} arrays or slices of this session's logits are alive and would change under their "
                    "users: copy what you keep, and drop or release() the rest first"
                )

    def release(self) -> None:
        """Releases the views that can be; those left are still exported. With the lock held."""
        for _, reference in filter(None, self.views):
            view = reference()
            if view is not None:
                # A view that is itself exported stays, and so does its memory.
                with contextlib.suppress(BufferError):
                    view.release()
            del view
        self._forget_dead()

    def _forget_dead(self) -> None:
        self.views = [entry for entry in self.views if entry is not None and entry[0]() is not None]

    def hand_out(self, session: "Session", position: int) -> memoryview:
        """A read-only view of the logits of a position."""
        values, count, error = c_void_p(), c_size_t(), c_void_p()
        with self.lock:
            self.views.append(None)
            try:
                if self.movers:
                    raise BusyError("another thread is inside the session")
                status = library().session_logits_view(session._handle, position, byref(values), byref(count), byref(error))
                if status:
                    raise_error(status, error)
                memory = (c_float * count.value).from_address(values.value or 0)
                memory.session = session._handle  # type: ignore[attr-defined]  # it lives as long as any view
                view = memoryview(memory).cast("B").cast("f").toreadonly()
                self.views.append((weakref.ref(memory), weakref.ref(view)))
                del memory
                return view
            finally:
                self._forget_dead()


class Session(Owner):
    """One sequence of tokens and its KV cache. One thread at a time: a second one gets BusyError.

    context_length: positions to reserve room for; default: the model's seq_len, 4096 at most. It keeps the model alive.
    """

    __slots__ = ("_step_seconds", "_views", "_vocab_size")

    def __init__(
        self,
        model: Model,
        *,
        context_length: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> None:
        self._held = None
        self._views = Views()
        self._vocab_size = model.vocab_size
        # How long the last single token took; until one was measured, any call may be long.
        self._step_seconds = float("inf")
        options = make_options(context_length=context_length, isa=isa, memory_limit_bytes=memory_limit_bytes)
        self._held = create("session", library().session_create, model._handle, options)

    def close(self) -> None:
        """Frees the session now or, while another thread is inside a call on it, when that call ends. More calls do nothing.

        Logits views are released; memory that slices or arrays of them still export stays until they go.
        """
        with self._views.lock:
            self._views.release()
        super().close()

    @property
    def vocab_size(self) -> int:
        """The model's number of token ids: the length of the logits."""
        return self._vocab_size

    @property
    def position(self) -> int:
        """The number of tokens appended."""
        return int(library().session_position(self._handle))

    def __len__(self) -> int:
        return self.position

    def __bool__(self) -> bool:
        return True

    @property
    def context_length(self) -> int:
        """The number of positions there is room for."""
        return int(library().session_context_length(self._handle))

    @property
    def memory_bytes(self) -> int:
        """All memory that the session holds."""
        return int(library().session_memory_bytes(self._handle))

    @property
    def tokens(self) -> List[int]:
        """The tokens appended so far."""
        ids = array("i", bytes(4 * self.context_length))
        needed, error = c_size_t(), c_void_p()
        status = library().session_tokens(self._handle, ids.buffer_info()[0], len(ids), byref(needed), byref(error))
        if status:
            raise_error(status, error)
        return ids[: needed.value].tolist()

    def append(self, tokens: Iterable[int], logits: str = "last", *, cancel: Optional[Cancel] = None) -> None:
        """Appends and evaluates tokens. logits: "none", "last" or "all": the positions whose logits are kept until
        the next append.

        cancel: stops it, and shows its progress in tokens. Ctrl-C stops it too; then nothing was appended.
        """
        ids, mode = token_array(tokens), _logits_mode(logits)
        if len(ids) * self._step_seconds < _interrupt.SHORT_SECONDS:
            self._append(ids, mode, cancel)
        else:
            _interrupt.run(lambda polled: self._append(ids, mode, polled), cancel)

    async def append_async(
        self,
        tokens: Iterable[int],
        logits: str = "last",
        *,
        cancel: Optional[Cancel] = None,
        executor: "Optional[Executor]" = None,
    ) -> None:
        """append() on a thread of the executor (default: the event loop's). Cancelling the task stops the evaluation."""
        ids, mode = token_array(tokens), _logits_mode(logits)
        await _interrupt.run_async(lambda polled: self._append(ids, mode, polled), cancel, executor)

    def _append(self, ids: "array[int]", mode: int, cancel: Optional[Cancel]) -> None:
        mover, views, error = object(), self._views, c_void_p()
        try:
            views.enter(mover)
            begin = time.perf_counter()
            status = library().session_append(
                self._handle,
                ids.buffer_info()[0],
                len(ids),
                mode,
                None if cancel is None else cancel._handle,
                byref(error),
            )
            if len(ids) == 1:
                self._step_seconds = time.perf_counter() - begin
            if status:
                raise_error(status, error)
        finally:
            views.leave(mover)

    def score(self, tokens: Iterable[int], *, cancel: Optional[Cancel] = None) -> List[float]:
        """Appends tokens and tells the logarithm of the probability of each behind all before it; NaN for the first token
        of an empty session. See Model.score() for many texts, and perplexity().

        cancel: stops it, and shows its progress in tokens. On failure nothing was appended.
        """
        ids = token_array(tokens)
        values = array("f", bytes(4 * len(ids)))
        _interrupt.run(lambda polled: self._score(ids, values, polled), cancel)
        return values.tolist()

    def _score(self, ids: "array[int]", values: "array[float]", cancel: Optional[Cancel]) -> None:
        mover, views = object(), self._views
        try:
            views.enter(mover)
            polled = None if cancel is None else cancel._handle
            call(library().session_score, self._handle, ids.buffer_info()[0], len(ids), values.buffer_info()[0], polled)
        finally:
            views.leave(mover)

    def logits(self, position: int = -1) -> memoryview:
        """The logits of a position, `vocab_size` float32 values, without a copy; negative positions count from the
        end.

        The view reads the session's own memory. The next append, rewind, generated token or close() releases it:
        using it then raises ValueError. While a slice of it or an array made from it is alive, those calls (but
        close()) raise BufferError instead, so keep a copy: `view.tolist()`, `array.array("f", view)`,
        `numpy.array(view)`.
        """
        return self._views.hand_out(self, self._at(position))

    def logits_copy(self, position: int = -1) -> "array[float]":
        """The same as an array of its own."""
        with self.logits(position) as view:
            return array("f", view.tobytes())

    def _at(self, position: int) -> int:
        number = int(position)
        if number < 0:
            number += self.position
        if number < 0:
            raise ArgumentError(f"position is {position}; the session has {self.position} positions")
        return size("position", number)

    def rewind(self, position: int) -> None:
        """Forgets everything from `position` on (negative: counted from the end), so that the next token lands there."""
        at, mover, views = self._at(position), object(), self._views
        try:
            views.enter(mover)
            call(library().session_rewind, self._handle, at)
        finally:
            views.leave(mover)

    def clone(
        self,
        *,
        context_length: Optional[int] = None,
        isa: Optional[str] = None,
        memory_limit_bytes: Optional[int] = None,
    ) -> "Session":
        """Another session that holds the same tokens and the logits of the last one if they are kept. Keys and values are
        shared until one of the two overwrites them, so that it takes no evaluation and little time.

        Without arguments it has this session's settings; with some, the defaults for the others.
        """
        made = Session.__new__(Session)
        made._held = None
        made._views = Views()
        made._vocab_size = self._vocab_size
        made._step_seconds = self._step_seconds
        options = make_options(context_length=context_length, isa=isa, memory_limit_bytes=memory_limit_bytes)
        made._held = create("session", library().session_clone, self._handle, options)
        return made

    def save(self) -> bytes:
        """What the session holds as bytes, for restore() here, in another process or on another machine. Equal states
        give equal bytes.
        """
        return read_bytes(library().session_save, self._handle)

    def restore(self, state: Any) -> None:
        """Replaces what the session holds by a saved state: any object with the buffer protocol. Logits views are released.
        On failure (changed bytes, another model's, no room) nothing changes.
        """
        mover, views = object(), self._views
        try:
            views.enter(mover)
            with Borrowed(state) as memory:
                call(library().session_restore, self._handle, memory.address, memory.size_bytes)
        finally:
            views.leave(mover)

    def generate(
        self,
        prompt: Union[str, bytes, Iterable[int]],
        tokenizer: "Tokenizer",
        sampler: "Optional[Sampler]" = None,
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
    ) -> "Generation":
        """Continues this session with a prompt: see Generation."""
        from .generation import Generation

        return Generation(
            self,
            prompt,
            tokenizer,
            sampler,
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
            stop_strings=stop_strings,
            logprobs=logprobs,
            cancel=cancel,
        )

    def chat(
        self,
        messages: "Iterable[Message]",
        tokenizer: "Tokenizer",
        sampler: "Optional[Sampler]" = None,
        *,
        template: Optional[str] = None,
        **settings: Any,
    ) -> "Generation":
        """The assistant's answer to a list of messages, as a Generation: its text is what the assistant says.

        The session keeps what it shares with the list, so that a conversation that grows is evaluated where it is new
        only. messages and template: see encode_chat(). settings: those of generate(); stop_tokens default to
        chat_stop_tokens().
        """
        from .chat import chat_stop_tokens, encode_chat

        prompt = encode_chat(tokenizer, messages, template=template)
        settings.setdefault("stop_tokens", chat_stop_tokens(tokenizer, template))
        if len(prompt) > self.context_length:
            raise ContextError(f"the chat has {len(prompt)} tokens; the session has {self.context_length} positions")
        common = 0
        for mine, wanted in zip(self.tokens, prompt[:-1]):
            if mine != wanted:
                break
            common += 1
        self.rewind(common)
        return self.generate(prompt[common:], tokenizer, sampler, **settings)


def _logits_mode(logits: str) -> int:
    try:
        return _ffi.LOGITS[logits]
    except (KeyError, TypeError):
        raise ArgumentError(f'logits is {logits!r}; expected "none", "last" or "all"') from None


class Batch(Owner):
    """Many sessions of one model, evaluated in one pass over the weights; each gets the bits of running alone.

    max_rows: most tokens a pass, 1 to 4096. One thread at a time.
    """

    __slots__ = ("_queued",)

    def __init__(self, model: Model, max_rows: int, *, isa: Optional[str] = None, memory_limit_bytes: Optional[int] = None) -> None:
        self._held = None
        self._queued: List[Session] = []
        options = make_options(isa=isa, memory_limit_bytes=memory_limit_bytes)
        self._held = create("batch", library().batch_create, model._handle, size("max_rows", max_rows), options)

    def close(self) -> None:
        """Frees the batch; what is queued is forgotten. More calls do nothing."""
        super().close()
        self._queued.clear()

    def __len__(self) -> int:
        return len(self._queued)

    def __bool__(self) -> bool:
        return True

    def add(self, session: Session, token: int, *, logits: bool = True) -> None:
        """Queues one token for one session. A session may be queued several times: its tokens are appended in that order."""
        call(library().batch_add, self._handle, session._handle, token_id("token", token), int(logits))
        self._queued.append(session)

    def evaluate(self, *, cancel: Optional[Cancel] = None) -> None:
        """Evaluates what is queued and empties the queue. On failure no session has moved and the queue is kept."""
        _interrupt.run(self._evaluate, cancel)

    async def evaluate_async(self, *, cancel: Optional[Cancel] = None, executor: "Optional[Executor]" = None) -> None:
        """evaluate() on a thread of the executor (default: the event loop's). Cancelling the task stops the evaluation."""
        await _interrupt.run_async(self._evaluate, cancel, executor)

    def _evaluate(self, cancel: Optional[Cancel]) -> None:
        mover, queued = object(), list(self._queued)
        try:
            for session in queued:
                session._views.enter(mover)
            call(library().batch_evaluate, self._handle, None if cancel is None else cancel._handle)
            self._queued = self._queued[len(queued) :]
        finally:
            for session in queued:
                session._views.leave(mover)

    def clear(self) -> None:
        """Empties the queue."""
        call(library().batch_clear, self._handle)
        self._queued.clear()
