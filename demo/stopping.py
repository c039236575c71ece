"""What a signal does: it is noticed between two requests, so nothing is left behind."""

import signal
from threading import Event


class StoppedError(Exception):
    """A signal asked the example to stop."""


class Stop:
    """Set by the first SIGINT or SIGTERM; further ones change nothing."""

    def __init__(self) -> None:
        self._asked = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._asked.set())

    def check(self) -> None:
        """Raise StoppedError if a signal has arrived."""
        if self._asked.is_set():
            raise StoppedError

    def wait(self, seconds: float) -> None:
        """Wait; raise StoppedError as soon as a signal arrives."""
        if self._asked.wait(seconds):
            raise StoppedError
