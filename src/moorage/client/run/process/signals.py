"""Signals as a queue: nothing is interrupted by them, somebody asks what has come."""

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
"""What is sent to the command when it is sent to us."""

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""What ends the wait in line."""

STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""What a terminal stops a process group with."""

WAKING = (signal.SIGCHLD, signal.SIGCONT, *STOPPING)


class Interrupted(Enum):
    """What a SIGINT was meant for."""

    PROCESS = "this process"
    GROUP = "its process group"


Handler = Callable[[int, "FrameType | None"], Any]


class Signals:
    """Collects signals while it is entered, in the main thread.

    What is ignored already (by nohup, say) stays so, for us and for the command. `on_stop` is
    called with one of `STOPPING` when it has come; by default it stops us, as ever.
    """

    def __init__(self) -> None:
        self._read, self._write = -1, -1
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self._kept: list[int] = []
        self.on_stop: Callable[[int], object] = self.stop

    def __enter__(self) -> Signals:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*FORWARDED, *WAKING):
            # A command is waited for even by those who ignore the end of theirs.
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
        """End a `wait` of the main thread; callable from any thread."""
        with suppress(OSError):  # full: it is awake anyway; closed: nobody waits any more
            os.write(self._write, b"\0")

    def wait(self, seconds: float) -> list[int]:
        """Return the signals that have come, in order, after at most so many seconds."""
        select.select([self._read], [], [], 0.0 if self._kept else max(0.0, seconds))
        numbers, self._kept = self._kept + self._come(), []
        stops = [number for number in _since_continued(numbers) if number in STOPPING]
        if stops:
            self.on_stop(stops[-1])
        return numbers

    def stop(self, number: int, group: bool = False) -> bool:
        """Stop this process as one of `STOPPING` does; return when it is told to go on.

        Args:
            number: of the signal.
            group: stop the rest of our process group, too.

        Returns:
            False if it did not stop: the signal is ignored, or, as nobody could tell us to go on,
            the kernel does not stop us (our process group is orphaned).
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
    """End this process, or its whole group, by SIGINT; where that is ignored, do nothing."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if what is Interrupted.GROUP:
        os.killpg(0, signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def _since_continued(numbers: list[int]) -> list[int]:
    """Return what came after the last SIGCONT, which undoes every stop before it."""
    last = max((at for at, number in enumerate(numbers) if number == signal.SIGCONT), default=-1)
    return numbers[last + 1 :]


def _noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the number is in the pipe."""
