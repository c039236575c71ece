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
    """A terminal with its own session, in which a program runs; the default is a bash script.

    Each line of the script is a separate job, as if it were typed.
    """

    def __init__(self, script: str = "", *program: str, **environment: str) -> None:
        words = program or ("/bin/bash", "--norc", "-c", f"set -m; {script}")
        self._seen = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execve(words[0], words, {**BARE, **environment})
        # Kill the whole session if the test fails.
        self._end = weakref.finalize(self, _killed, self.pid)

    def until(self, text: str) -> str:
        """Read until this text appears; return everything before it."""
        while text not in self._seen:
            ready, _, _ = select.select([self._fd], [], [], SECONDS)
            assert ready, f"{text!r} did not appear: {self._seen!r}"
            self._seen += os.read(self._fd, 4096).decode()
        before, _, self._seen = self._seen.partition(text)
        return before

    def read_number(self, name: str) -> int:
        """Read until `NAME=NUMBER.` appears; return the number."""
        self.until(f"{name}=")
        return int(self.until("."))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def read_rest(self) -> str:
        """Read until the shell has exited; return what was read."""
        with suppress(OSError):  # the terminal closes with the shell
            while True:
                ready, _, _ = select.select([self._fd], [], [], SECONDS)
                assert ready, f"the shell does not exit: {self._seen!r}"
                self._seen += os.read(self._fd, 4096).decode()
        return self._seen

    def exit_code(self) -> int:
        """Wait for the shell; return its exit code."""
        self._end.detach()
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)


def _killed(leader: int) -> None:
    for member in session_of(leader):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def shell_command(*arguments: str) -> str:
    """Return the command line of the single file, quoted for a shell."""
    return shlex.join(command(*arguments))


def state(pid: int) -> str:
    """Return the state of a process as in /proc; T: stopped, `-`: the process does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "-"


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def eventually(look: Callable[[], bool]) -> None:
    """Check repeatedly until a condition is true."""
    for _ in range(int(SECONDS / 0.02)):
        if look():
            return
        select.select([], [], [], 0.02)
    raise AssertionError("the condition did not become true in time")
