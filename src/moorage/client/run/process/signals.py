"""Queues signals: they interrupt nothing, and the main thread reads them from the queue."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from types import FrameType, TracebackType
from typing import Any

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that are forwarded to the command."""

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end the wait in line."""

STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals with which a terminal stops a process group."""

WAKING = (signal.SIGCHLD, signal.SIGCONT, *STOPPING)


class Interrupted(Enum):
    """The target of a SIGINT."""

    PROCESS = "this process"
    GROUP = "its process group"


class SignalCollector:
    """Collects signals while its context is entered, in the main thread.

    Signals that are already ignored (by nohup, for example) stay ignored, for this process and for
    the command. `on_stop` is called with each signal of `STOPPING`; by default it stops this
    process, as usual.
    """

    def __init__(self) -> None:
        self._read, self._write = -1, -1
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self._kept: list[int] = []
        self.on_stop: Callable[[int], object] = self.stop

    def __enter__(self) -> SignalCollector:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*FORWARDED, *WAKING):
            # SIGCHLD is needed to wait for the command, even if it was ignored.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, _noted)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._wakeup_before)
        read, write, self._read, self._write = self._read, self._write, -1, -1
        os.close(read)
        os.close(write)

    def wake(self) -> None:
        """End a `wait` of the main thread; may be called from any thread."""
        with suppress(OSError):  # a full pipe wakes it anyway; a closed one has no waiter
            os.write(self._write, b"\0")

    def wait(self, seconds: float) -> list[int]:
        """Return the signals received, in order, after at most this many seconds."""
        select.select([self._read], [], [], 0.0 if self._kept else max(0.0, seconds))
        numbers, self._kept = self._kept + self._come(), []
        stops = [number for number in _since_continued(numbers) if number in STOPPING]
        if stops:
            self.on_stop(stops[-1])
        return numbers

    def stop(self, number: int, group: bool = False) -> bool:
        """Stop this process as one of `STOPPING` does; return after SIGCONT.

        Args:
            number: of the signal.
            group: stop the rest of this process group, too.

        Returns:
            False if it did not stop: the signal is ignored, or the process group is orphaned (the
            kernel does not stop those, because no shell could continue them).
        """
        if number not in self._before:
            return False
        signal.signal(number, signal.SIG_IGN)
        if group:
            os.killpg(0, number)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, _noted)
        came = self._come()
        self._kept += [other for other in came if other not in (*STOPPING, signal.SIGCONT)]
        return signal.SIGCONT in came

    def _come(self) -> list[int]:
        try:
            return [number for number in os.read(self._read, 4096) if number]
        except BlockingIOError:
            return []


def end_by_interrupt(what: Interrupted) -> None:
    """End this process, or its whole group, by SIGINT; do nothing if that is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if what is Interrupted.GROUP:
        os.killpg(0, signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def _since_continued(numbers: list[int]) -> list[int]:
    """Return the signals after the last SIGCONT, which cancels all stops before it."""
    last = max((at for at, number in enumerate(numbers) if number == signal.SIGCONT), default=-1)
    return numbers[last + 1 :]


def _noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: Python has written the number to the pipe."""
