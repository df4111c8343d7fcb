"""Stops an operation from outside and shows how far it is."""

from __future__ import annotations

from ctypes import byref, c_uint64
from typing import Tuple

from ._handle import Owner, create
from ._library import library


class Cancel(Owner):
    """Handed to one or more operations, stops those that run with it and those started with it until reset(). Any thread."""

    __slots__ = ()

    def __init__(self) -> None:
        self._held = None
        self._held = create("cancel", library().cancel_create)

    def request(self) -> None:
        """Asks the operations to stop: they raise CancelledError."""
        library().cancel_request(self._handle)

    def reset(self) -> None:
        """Takes the request back and sets `progress` to (0, 0)."""
        library().cancel_reset(self._handle)

    @property
    def requested(self) -> bool:
        """Whether a request is pending."""
        return bool(library().cancel_requested(self._handle))

    @property
    def progress(self) -> Tuple[int, int]:
        """(done, total) of the operation that holds this: bytes for loading, tokens for appending. Total is 0 before
        it starts.
        """
        done, total = c_uint64(), c_uint64()
        library().cancel_progress(self._handle, byref(done), byref(total))
        return done.value, total.value
