"""A terminal on which a shell with job control runs the single file."""

import os
import pty
import select
import shlex
import signal
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.client.single import BARE, SECONDS, command, session_of


class Screen:
    """A terminal with a session of its own, in which a program runs: by default bash, a script.

    Each line of the script is a job of its own, as if it were typed.
    """

    def __init__(self, script: str = "", *program: str, **environment: str) -> None:
        words = program or ("/bin/bash", "--norc", "-c", f"set -m; {script}")
        self._seen = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, {**BARE, **environment})
        # A test that fails leaves nothing of it behind.
        self._end = weakref.finalize(self, _killed, self.pid)

    def until(self, text: str) -> str:
        """Read until this appears; return all that came before it."""
        while text not in self._seen:
            ready, _, _ = select.select([self._fd], [], [], SECONDS)
            assert ready, f"{text!r} does not come: {self._seen!r}"
            self._seen += os.read(self._fd, 4096).decode()
        before, _, self._seen = self._seen.partition(text)
        return before

    def number(self, name: str) -> int:
        """Read until `NAME=NUMBER.` appears; return the number."""
        self.until(f"{name}=")
        return int(self.until("."))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def rest(self) -> str:
        """Read until the shell has ended; return what came."""
        with suppress(OSError):  # the terminal has gone with the shell
            while True:
                ready, _, _ = select.select([self._fd], [], [], SECONDS)
                assert ready, f"it does not end: {self._seen!r}"
                self._seen += os.read(self._fd, 4096).decode()
        return self._seen

    def ended(self) -> int:
        """Return the exit code of the shell."""
        self._end.detach()
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)


def _killed(leader: int) -> None:
    for member in session_of(leader):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def quoted(*arguments: str) -> str:
    """Return the command line of the single file for a shell."""
    return shlex.join(command(*arguments))


def state(pid: int) -> str:
    """Return what the kernel says that a process does; T: it is stopped, `-`: it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "-"


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def eventually(look: Callable[[], bool]) -> None:
    """Look again and again until it is so."""
    for _ in range(int(SECONDS / 0.02)):
        if look():
            return
        select.select([], [], [], 0.02)
    raise AssertionError("what is waited for does not come")
