"""What a signal does: it is noticed between two requests, or ends the wait for an answer."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread


class StoppedError(Exception):
    """A signal asked the example to stop."""


class Stop:
    """Set by the first SIGINT or SIGTERM; further ones change nothing."""

    def __init__(self) -> None:
        self._asked = Event()
        self._waits = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked.set()
        if self._waits:
            self._waits = False
            raise StoppedError

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Let a signal end what the block waits for, such as the answer of a server that hangs.

        Raises StoppedError. Only the main thread hears signals: in others nothing changes.
        """
        if current_thread() is not main_thread():
            yield
            return
        self._waits = True
        try:
            self.check()
            yield
        finally:
            self._waits = False

    def check(self) -> None:
        """Raise StoppedError if a signal has arrived."""
        if self._asked.is_set():
            raise StoppedError

    def wait(self, seconds: float) -> None:
        """Wait; raise StoppedError as soon as a signal arrives."""
        if self._asked.wait(seconds):
            raise StoppedError
