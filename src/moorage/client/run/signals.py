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

WAKING = (signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP)


class Interrupted(Enum):
    """What a SIGINT was meant for."""

    PROCESS = "this process"
    GROUP = "its process group"


Handler = Callable[[int, "FrameType | None"], Any]


class Signals:
    """Collects signals while it is entered, in the main thread.

    What is ignored already (by nohup, say) stays so, for us and for the command. SIGTSTP stops us,
    as ever, but after `before_stop`.
    """

    def __init__(self) -> None:
        self._read, self._write = -1, -1
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self.before_stop: Callable[[], None] = lambda: None

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
        select.select([self._read], [], [], max(0.0, seconds))
        try:
            numbers = [number for number in os.read(self._read, 4096) if number]
        except BlockingIOError:
            return []
        if signal.SIGTSTP in numbers:
            self.before_stop()
            os.kill(os.getpid(), signal.SIGSTOP)
        return numbers


def end_by_interrupt(what: Interrupted) -> None:
    """End this process, or its whole group, by SIGINT; where that is ignored, do nothing."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if what is Interrupted.GROUP:
        os.killpg(0, signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def _noted(number: int, frame: FrameType | None) -> None:
    """Do nothing: the number is in the pipe."""
