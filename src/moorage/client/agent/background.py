"""Runs one function at a time in a thread, so that the main thread can wait for signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class BackgroundResult(NamedTuple):
    """What a function has returned, or the exception that it has raised."""

    value: Any
    error: Exception | None


class Background:
    """Runs a function in a thread. The thread does not keep the process from ending."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called in the thread whenever a function has ended."""
        self._wake = wake
        self._thread: threading.Thread | None = None
        self._outcome: BackgroundResult | None = None

    @property
    def busy(self) -> bool:
        """Whether a function runs, or its outcome was not taken yet."""
        return self._thread is not None

    def start(self, work: Callable[[], Any]) -> None:
        """Run a function; the one before must have been taken."""
        assert self._thread is None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def take(self) -> BackgroundResult | None:
        """Return the outcome if the function has ended."""
        outcome = self._outcome
        if outcome is None or self._thread is None:
            return None
        self._thread.join()
        self._thread, self._outcome = None, None
        return outcome

    def join(self, seconds: float) -> None:
        """Wait for the function to end, at most this long."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            outcome = BackgroundResult(work(), None)
        except Exception as error:  # the main thread decides what it means
            outcome = BackgroundResult(None, error)
        self._outcome = outcome
        self._wake()
