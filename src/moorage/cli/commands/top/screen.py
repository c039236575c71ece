"""The whole screen of a terminal: what is drawn on it, single keys, resizing, suspending.

The terminal is restored at the end, at an error, at SIGTERM, and while the command is stopped.
"""

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from moorage.cli.support.output import forget_unwritten

BEGIN = "\x1b[?1049h\x1b[?25l\x1b[2J"
"""Draw on the screen for whole-screen programs, without a cursor, and clear it."""

END = "\x1b[?25h\x1b[?1049l"

HOME, CLEAR_LINE = "\x1b[H", "\x1b[2K"

KEYS = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), "up"),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), "down"),
    **dict.fromkeys((b"\x1b[5~", b"b"), "page up"),
    **dict.fromkeys((b"\x1b[6~", b" "), "page down"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"\x1b[7~", b"g"), "home"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x1b[8~", b"G"), "end"),
    b"\t": "tab",
}
"""Names of keys, by what terminals send; a key that is a letter is named by it."""

KEY = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|\x1b?[^\x1b]")
UNREAD_MAX = 16
"""Bytes of a key that is not complete yet; more are no key."""

QUIT = "q"
SIGNALS = (signal.SIGWINCH, signal.SIGTERM, signal.SIGTSTP, signal.SIGCONT)


class Screen:
    """A terminal of which one command uses all of the screen; a context manager."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._before: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []
        self._unread = b""
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        """Begin to use the terminal."""
        self._before = termios.tcgetattr(self._input)
        self._handlers = {one: signal.signal(one, self._note) for one in SIGNALS}
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Restore the terminal; if SIGTERM has arrived, end by it."""
        try:
            self._end()
        except (OSError, termios.error):  # the terminal is gone
            forget_unwritten(sys.stdout)
        signal.set_wakeup_fd(-1)
        for one, handler in self._handlers.items():
            signal.signal(one, handler)
        if signal.SIGTERM in self._arrived:
            signal.raise_signal(signal.SIGTERM)

    def wake(self) -> None:
        """End the present wait for keys; any thread may call it."""
        with suppress(BlockingIOError):  # it is awake already
            os.write(self._waker, b"\0")

    def draw(self, lines: Sequence[str]) -> None:
        """Draw lines that fit on the screen; as many as it has."""
        # A line is cleared first: behind a full one that would erase its last character.
        with suppress(OSError):  # the terminal is gone: `keys` notices
            sys.stdout.write(HOME + "\r\n".join(f"{CLEAR_LINE}{line}" for line in lines))
            sys.stdout.flush()

    def keys(self, seconds: float) -> list[str]:
        """Wait for keys, a resize, `wake` or until the time is over; return the names of the keys.

        The last one is `QUIT` if the command must end.
        """
        ready, _, _ = select.select([self._input, self._woken], [], [], seconds)
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, 4_096)
        names = []
        if self._input in ready:
            try:
                read = os.read(self._input, 1_024)
            except OSError:  # the terminal is gone
                read = b""
            if not read:
                return [QUIT]
            names = self._named(read)
        return [*names, *self._signals()]

    def _named(self, read: bytes) -> list[str]:
        self._unread += read
        found = [*KEY.finditer(self._unread)]
        self._unread = self._unread[found[-1].end() if found else 0 :][:UNREAD_MAX]
        return [KEYS.get(one[0]) or one[0].decode("ascii", "replace") for one in found]

    def _signals(self) -> list[str]:
        """Do what the signals that have arrived ask for."""
        names = []
        while self._arrived and self._arrived[0] != signal.SIGTERM:
            one = self._arrived.pop(0)
            if one == signal.SIGTSTP:
                self._stop()
            elif one == signal.SIGCONT:
                self._begin()
            else:
                sys.stdout.write("\x1b[2J")  # what does not fit any more must not stay
        if self._arrived:
            names.append(QUIT)
        return names

    def _stop(self) -> None:
        """Stop as if nobody had handled the signal, with the terminal as it was."""
        self._end()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)  # returns when the command is continued
        signal.signal(signal.SIGTSTP, handler)
        self._begin()

    def _begin(self) -> None:
        tty.setcbreak(self._input)
        sys.stdout.write(BEGIN)
        sys.stdout.flush()

    def _end(self) -> None:
        try:
            sys.stdout.write(END)
            sys.stdout.flush()
        finally:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._arrived.append(number)
