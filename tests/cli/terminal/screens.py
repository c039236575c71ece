"""A command that draws on the whole screen of a real terminal, and what a person sees on it."""

import os
import pty
import re
import select
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from tests.cli.command import COMMAND, SECONDS
from tests.cli.pooled import SIZE

SEQUENCE = re.compile(rb"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")
INCOMPLETE = re.compile(rb"\x1b(\[[0-9;?]*)?$")
BEGIN, END = (b"?1049", b"h"), (b"?1049", b"l")


class Watched:
    """A command at a terminal, and the present content of that."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, theirs: int) -> None:
        self.process, self._terminal, self._theirs = process, terminal, theirs
        self.whole = False
        """Whether it has the whole screen: otherwise the shell's lines are shown."""
        self.cursor = True
        self.lines: list[str] = []
        self.before = b""
        """What was written outside of the whole screen."""
        self._row = 0
        self._too_large = False
        """Whether what was drawn last did not fit: it would have been wrapped, or have scrolled."""
        self._unread = b""
        self.size(*termios.tcgetwinsize(theirs))

    def size(self, lines: int, columns: int) -> None:
        """Resize the terminal, as a window does, and tell the command."""
        termios.tcsetwinsize(self._theirs, (lines, columns))
        self.columns = columns
        self.lines = [*self.lines[:lines], *[""] * (lines - len(self.lines))]
        self.process.send_signal(signal.SIGWINCH)

    @property
    def text(self) -> str:
        """Return what is shown."""
        return "\n".join(self.lines) + "\n"

    @property
    def is_cooked(self) -> bool:
        """Return whether the terminal shows what is typed, line by line: as a shell leaves it."""
        modes = termios.tcgetattr(self._theirs)[3]
        return bool(modes & termios.ECHO and modes & termios.ICANON)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def until(self, met: Callable[[], bool]) -> None:
        """Read what it draws until a condition is met."""
        deadline = monotonic() + SECONDS
        while not met():
            assert monotonic() < deadline, self.text
            if select.select([self._terminal], [], [], 0.05)[0]:
                self._draw(os.read(self._terminal, 65_536))

    def shows(self, words: str) -> None:
        """Wait until these words are shown on the whole screen, and it is drawn completely."""
        self.until(lambda: self._is_drawn and words in self.text)

    @property
    def _is_drawn(self) -> bool:
        last = len(self.lines) - 1
        whole = self.whole and self._row == last and self.lines[last].endswith("quit")
        return whole and not self._too_large

    def hangs_up(self) -> int:
        """Close the terminal; wait until the command exits and return its exit code."""
        self.close()
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """Close our end of the terminal."""
        if self._terminal >= 0:
            os.close(self._terminal)
        self._terminal = -1

    def ends(self) -> int:
        """Wait until the command exits; return its exit code."""
        self.until(lambda: self.process.poll() is not None)
        self._drain()
        return self.process.returncode

    def stops(self) -> None:
        """Wait until the command is stopped by a signal."""

        def stopped() -> bool:
            found = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            return found is not None

        self.until(stopped)
        self._drain()

    def _drain(self) -> None:
        """Read what it has drawn last."""
        while select.select([self._terminal], [], [], 0)[0]:
            self._draw(os.read(self._terminal, 65_536))

    def _draw(self, read: bytes) -> None:
        read = self._unread + read
        part = INCOMPLETE.search(read)
        self._unread = part[0] if part else b""
        for found in SEQUENCE.finditer(read[: len(read) - len(self._unread)]):
            if found[2] is not None:
                self._control(found[1], found[2])
            elif not self.whole:
                self.before += found[0]
            elif found[0] == b"\n":
                self._row += 1
                self._too_large |= self._row >= len(self.lines)
            elif found[0] != b"\r" and self._row < len(self.lines):
                self.lines[self._row] += found[0].decode()
                self._too_large |= len(self.lines[self._row]) > self.columns

    def _control(self, what: bytes, letter: bytes) -> None:
        if (what, letter) in (BEGIN, END):
            self.whole = letter == b"h"
        elif (what, letter) in ((b"?25", b"h"), (b"?25", b"l")):
            self.cursor = letter == b"h"
        elif letter == b"H":
            self._row, self._too_large = 0, False
        elif letter == b"K" and self._row < len(self.lines):
            self.lines[self._row] = ""
        elif letter == b"J":
            self.lines = [""] * len(self.lines)
        else:
            assert letter in b"mK", (what, letter)


@contextmanager
def watched(
    *arguments: str,
    folder: Path | None = None,
    lines: int = 24,
    columns: int = 80,
    command: Sequence[str] = COMMAND,
    **environment: str,
) -> Iterator[Watched]:
    """Run a command at a terminal, in a process group of its own as a shell does."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, columns))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in SIZE and not name.startswith("MOORAGE_")
    }
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env={**inherited, "TERM": "xterm", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        process_group=0,
    )
    screen = Watched(process, ours, theirs)
    try:
        yield screen
    finally:
        process.kill()
        process.wait()
        screen.close()
        os.close(theirs)
