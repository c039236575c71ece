"""Searches the output of a command for a pattern, while it passes through unchanged and at once.

The command writes into a pipe, or into a terminal of its own where this process has a terminal, so
that it buffers and colours as without `moorage run`. Threads copy what comes. The main thread
searches it, with a limit of processor time: only there Python can interrupt a search, and a pattern
may need years for one line. What comes faster than it can be searched is passed on unsearched, so
that nobody waits and little memory is needed; the end of the output is always searched.
"""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from types import FrameType

from moorage.client.run.clock import elapsed
from moorage.client.run.terminal import STDERR, STDOUT

CHUNK = 65_536
LINE_MAX = 65_536
"""Bytes of a line after which it is searched although it has not ended."""

WAITING_MAX = 1 << 20
"""Bytes that wait for the search; of more, the oldest are passed over."""

SEARCH_SECONDS = 0.5
"""Processor time for one search of what waits; it usually takes milliseconds."""

DRAIN_SECONDS = 1.0
"""How long the last output of an ended command may take before its outcome is decided."""

LOOK_SECONDS = 0.02


class TooSlowError(Exception):
    """The pattern needs too much time."""


class Output:
    """The standard output and error of one command. Create and use it in the main thread.

    `found` is the text that matched, once one has; `trouble` says why nothing is searched any more.
    """

    def __init__(self, pattern: re.Pattern[bytes], wake: Callable[[], None]) -> None:
        """Prepare what the command writes into; `wake` is called when there is something to search.

        Raises OSError.
        """
        self.found: bytes | None = None
        self.trouble: str | None = None
        self._pattern = pattern
        self._armed = False
        self._streams: list[_Stream] = []
        self._of: dict[int, _Stream] = {}
        self._before = signal.signal(signal.SIGVTALRM, self._expired)
        for target in (STDOUT, STDERR):
            stream = self._shared(target)
            if stream is None:
                with suppress(OSError):  # it is closed: so it is for the command
                    os.fstat(target)
                    stream = _Stream(target, wake)
                    self._streams.append(stream)
            if stream is not None:
                self._of[target] = stream

    def _shared(self, target: int) -> _Stream | None:
        """Return the stream to the same file: what is written there must stay in its order."""
        for stream in self._streams:
            with suppress(OSError):
                if os.path.sameopenfile(stream.target, target):
                    return stream
        return None

    def of(self, target: int) -> int | None:
        """Return what the command gets for one of our file descriptors; None: the same."""
        stream = self._of.get(target)
        return None if stream is None else stream.given

    def start(self) -> None:
        """Begin to copy: the command has started."""
        for stream in self._streams:
            stream.start()

    def search(self, *, last: bool = False) -> None:
        """Search what has come since the last call; with `last` also lines that have not ended."""
        for stream in self._streams:
            stream.resize()
            text = stream.take(last=last)
            if not text or self.found is not None or self.trouble is not None:
                continue
            try:
                self._look(text)
            except TooSlowError:
                self.trouble = "the pattern of --throttled-when takes too long"

    def _look(self, text: bytes) -> None:
        self._armed = True
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SEARCH_SECONDS)
            match = self._pattern.search(text)
            self._armed = False
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if match is not None:
            self.found = match[0]

    def _expired(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise TooSlowError

    def finish(self) -> None:
        """Search the rest: the command has ended. What it left running writes nowhere any more."""
        until = elapsed() + DRAIN_SECONDS
        for stream in self._streams:
            stream.end()
        for stream in self._streams:
            stream.join(until - elapsed())
        self.search(last=True)

    def close(self, stop: Callable[[], bool]) -> None:
        """Wait until everything is written, as the command would have; `stop` may end the wait."""
        for stream in self._streams:
            stream.end()
            while not stream.join(LOOK_SECONDS) and not stop():
                pass
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if self._before is None else self._before)


class _Stream:
    """What passes to one of our file descriptors."""

    def __init__(self, target: int, wake: Callable[[], None]) -> None:
        self.target = target
        self._wake = wake
        self._is_terminal = os.isatty(target)
        self._read, self.given = _terminal() if self._is_terminal else os.pipe()
        self._size = b""
        self._ends, self._end = os.pipe()
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self.resize()

    def start(self) -> None:
        os.close(self.given)
        self._thread.start()

    def end(self) -> None:
        """Copy what has come so far, and no more."""
        if self._end >= 0:
            os.close(self._end)
            self._end = -1

    def join(self, seconds: float) -> bool:
        """Return whether everything is copied, after at most this time."""
        if self._thread.ident is None:
            return True
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def resize(self) -> None:
        """Give the terminal of the command the size of ours."""
        if not self._is_terminal:
            return
        with suppress(OSError):
            size = ioctl(self.target, termios.TIOCGWINSZ, b"\0" * 8)
            if size != self._size:
                ioctl(self._read, termios.TIOCSWINSZ, size)
                self._size = size

    def take(self, *, last: bool) -> bytes:
        """Remove and return the whole lines that wait, and with `last` the rest."""
        with self._lock:
            waiting = self._waiting
            end = len(waiting) if last else waiting.rfind(b"\n") + 1
            if not end and len(waiting) >= LINE_MAX:
                end = len(waiting)
            taken = bytes(waiting[:end])
            del waiting[:end]
        return taken

    def _copy(self) -> None:
        # Like the command, this may write to the terminal from the background.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        try:
            while data := self._next():
                _write(self.target, data)
                self._put(data)
        except OSError:
            pass  # our reader is gone: the command learns it by its next write
        finally:
            os.close(self._read)
            os.close(self._ends)
            self._wake()

    def _next(self) -> bytes:
        """Return what the command has written; nothing: it is the end."""
        ready, _, _ = select.select([self._read, self._ends], [], [])
        if self._read not in ready and not select.select([self._read], [], [], 0)[0]:
            return b""
        try:
            return os.read(self._read, CHUNK)
        except OSError:
            return b""  # of a terminal: nobody has it open any more

    def _put(self, data: bytes) -> None:
        with self._lock:
            is_new = not self._waiting
            self._waiting += data
            del self._waiting[: max(0, len(self._waiting) - WAITING_MAX)]
        if is_new or b"\n" in data:
            self._wake()


def _terminal() -> tuple[int, int]:
    """Return both ends of a terminal that passes on what is written, byte by byte."""
    ours, given = os.openpty()
    settings = termios.tcgetattr(given)
    settings[1] &= ~termios.OPOST
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(given, termios.TCSANOW, settings)
    return ours, given


def _write(target: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    while data:
        try:
            data = data[os.write(target, data) :]
        except BlockingIOError:  # another process has made it so
            select.select([], [target], [])
