"""Long calls that Ctrl-C and asyncio can stop.

Python runs signal handlers only on the main thread and between two bytecodes, so a long C call on the main thread
would keep Ctrl-C waiting. Such a call runs on a helper thread while the main thread waits where a handler can run. If
a handler raises, the operation is cancelled, its end awaited, and the handler's exception goes on.
"""

from __future__ import annotations

import _thread
import threading
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar

from .cancel import Cancel

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

T = TypeVar("T")

# A call that is expected to last less runs on the calling thread: Ctrl-C waits at most about this long.
SHORT_SECONDS = 0.02
# A signal that arrives just before a thread falls asleep does not wake it, so the main thread looks up this often.
WAKE_SECONDS = 0.05


def _nothing() -> None:
    """What a job that was done has left to do."""


class Job(Generic[T]):
    """A call handed to another thread, which can be taken back as long as it has not begun."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], Optional[T]] = work
        self._lock = threading.Lock()
        self._begun = False
        self._abandoned = False
        self._finished = False
        self._gate = threading.Lock()  # held until the end
        self._gate.acquire()
        self.result: Optional[T] = None
        self.error: Optional[BaseException] = None

    def run(self) -> None:
        """On the other thread."""
        with self._lock:
            if self._abandoned:
                return
            self._begun = True
        try:
            self.result = self._work()
        except BaseException as error:  # handed to the thread that waits
            self.error = error
        finally:
            self._work = _nothing  # it may hold a handle that shall be freed now
            self._finished = True
            self._gate.release()

    def wait(self) -> None:
        """Until run() has ended. May be interrupted and called again anywhere, which threading.Event does not promise."""
        while not self._finished and not self._gate.acquire(timeout=WAKE_SECONDS):
            pass

    def outcome(self) -> T:
        """The result of work(), or what it raised; once."""
        error, self.error = self.error, None
        if error is None:
            return self.result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error, self  # no cycle from the traceback back to the exception

    def abandon(self) -> bool:
        """True if the call had not begun; it never will."""
        with self._lock:
            self._abandoned = not self._begun
            return self._abandoned


class Stop:
    """Asks the operations of one Cancel to stop on behalf of an interrupt, and takes the request back unless it is
    the user's.
    """

    def __init__(self, cancel: Cancel) -> None:
        self._cancel = cancel
        self._mine = False

    def __call__(self) -> None:
        if not self._cancel.requested:
            self._mine = True
            self._cancel.request()

    def undo(self) -> None:
        """After the operation has ended."""
        if self._mine:
            self._cancel.reset()


def needs_help() -> bool:
    """Whether a long call here would keep signal handlers waiting."""
    return threading.current_thread() is threading.main_thread()


def run_on_helper(work: Callable[[], T], cancel: Cancel, lost: Optional[Callable[[T], None]] = None) -> T:
    """work() on a helper thread; the main thread waits where signal handlers run. `cancel` must be the one that work() polls.

    `lost` gets the result of an operation that ended well although an interrupt keeps it from being returned.
    """
    job = Job(work)
    stop = Stop(cancel)
    try:
        try:
            _thread.start_new_thread(job.run, ())
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            return work()
        job.wait()
    except BaseException:
        if _settle(job, stop) and job.error is None and lost is not None:
            lost(job.outcome())
        raise
    return job.outcome()


def _settle(job: "Job[Any]", stop: Stop) -> bool:
    """Until the operation has ended, whatever else interrupts: afterwards the session is at rest. Whether it had begun."""
    while True:
        try:
            stop()
            begun = not job.abandon()
            if begun:
                job.wait()
            stop.undo()
            return begun
        except BaseException:  # noqa: S112  # a second Ctrl-C; the first one goes on when this is done
            continue


def run(work: Callable[[Optional[Cancel]], T], cancel: Optional[Cancel], lost: Optional[Callable[[T], None]] = None) -> T:
    """work(cancel), interruptible. Off the main thread no handler waits, and it simply runs."""
    if not needs_help():
        return work(cancel)
    polled = cancel if cancel is not None else Cancel()
    return run_on_helper(lambda: work(polled), polled, lost)


async def run_async(
    work: Callable[[Cancel], T],
    cancel: Optional[Cancel],
    executor: "Optional[Executor]" = None,
    lost: Optional[Callable[[T], None]] = None,
) -> T:
    """work(cancel) on a thread of the executor (default: the loop's). If the task is cancelled, so is the operation,
    and its end is awaited; `lost` gets the result of one that had ended already.
    """
    import asyncio  # half of the package's import time, and most programs do without

    polled = cancel if cancel is not None else Cancel()
    job = Job(lambda: work(polled))
    stop = Stop(polled)
    future = asyncio.get_running_loop().run_in_executor(executor, job.run)
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        stop()
        if not job.abandon():
            await _at_rest(future)
            if job.error is None and lost is not None:
                lost(job.outcome())
        stop.undo()
        raise
    return job.outcome()


async def _at_rest(future: "asyncio.Future[None]") -> None:
    import asyncio

    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
