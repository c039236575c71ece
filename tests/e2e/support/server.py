"""Start and stop a real `moorage serve` process. Standard library only: other environments use it.

Nothing is imported from the process: everything goes through its command line, its ready line and
its sockets.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.support import warm
from tests.support.guard import Guard

READY = re.compile(r"moorage: serving (?P<url>https?://\S+)")
BOSKOS = re.compile(r"moorage: (?P<url>http://\S+) is for clients of Boskos")
READY_SECONDS = 30.0
STOP_SECONDS = 15.0
SAY_SECONDS = 30.0
MOORAGE = (sys.executable, "-m", "moorage")


class NotStarted(Exception):
    """The server ended before its ready line, or printed none; carries its output."""


class Server:
    """A server process, such as `moorage serve`; use it as a context manager.

    It ends when this process does, in any way.

    `url` is the address from the ready line, `pid` the process, `said` every line of its standard
    output and error until now.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        ready: re.Pattern[str] = READY,
        passed: Sequence[int] = (),
        seconds: float = READY_SECONDS,
        *,
        forked: bool = False,
    ) -> None:
        """Start the command and wait for the ready line, which names the address as `url`.

        Args:
            command: what to start.
            environment: all its variables; by default those of this process.
            directory: where it runs.
            ready: the ready line.
            passed: files that it inherits.
            seconds: how long the ready line may take.
            forked: whether the command is one of `moorage`, without the program, and the warm
                process forks it. It inherits no files.

        Raises:
            NotStarted: no ready line in time, or the process ended before it.
        """
        self.said: list[str] = []
        self.url = ""
        self._line = ready
        self._ready = threading.Event()
        self._more = threading.Condition()
        variables = dict(os.environ if environment is None else environment)
        output, its = os.pipe()
        self.process: subprocess.Popen[bytes] | warm.Forked
        try:
            if forked:
                self.process = warm.fork(command, its, its, directory, variables, session=True)
            else:
                self.process = subprocess.Popen(
                    [*command],
                    env=variables,
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=its,
                    stderr=its,
                    start_new_session=True,
                    pass_fds=passed,
                )
        finally:
            os.close(its)
        self._guard = Guard(self.process.pid, group=True)
        lines = os.fdopen(output, errors="replace")
        self._reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._reader.start()
        if not self._ready.wait(seconds) or not self.url:
            self.stop()
            raise NotStarted("".join(self.said) or "no ready line")

    @property
    def pid(self) -> int:
        """The process that was started (under `make`: make itself)."""
        return self.process.pid

    @property
    def boskos_url(self) -> str:
        """The address for clients of Boskos and of the lease proxy."""
        (found,) = (hit["url"] for line in self.said if (hit := BOSKOS.match(line)))
        return str(found)

    def _read(self, lines: IO[str]) -> None:
        """Collect the process's output; the ready line, or its end, wakes the starter."""
        with lines:
            for line in lines:
                with self._more:
                    self.said.append(line)
                    self._more.notify_all()
                found = self._line.search(line)
                if found and not self.url:
                    self.url = found["url"]
                    self._ready.set()
        self._ready.set()

    def wait_for(self, words: str, times: int = 1) -> None:
        """Return when it has printed a line with these words this often. Raises TimeoutError."""
        with self._more:
            if not self._more.wait_for(
                lambda: sum(words in line for line in self.said) >= times, SAY_SECONDS
            ):
                raise TimeoutError(f"{words!r} is not among {self.said}")

    def resident(self, *, most: bool = False) -> int:
        """Return the memory of the process, in bytes; or the most that it ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        name = "VmHWM:" if most else "VmRSS:"
        (line,) = (line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End the process and everything it started; return its exit code.

        Its own session is signalled, so that a server below `make` or a shell ends as well.
        """
        self._guard.close()
        if self.process.poll() is None:
            with suppress(ProcessLookupError):  # it ends right now
                os.killpg(self.process.pid, how)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            code = self.process.wait()
        self._reader.join(STOP_SECONDS)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def serve(
    database: Path | str,
    *options: str,
    moorage: Sequence[str] | None = None,
    **environment: str,
) -> Server:
    """Start `moorage serve` on a free port of 127.0.0.1 with its database in a file.

    Args:
        database: the SQLite file, made if it is not there, or the address of a database.
        options: more of the command line, such as `--auth`, `noauth2`, `--testing`.
        moorage: the command itself; by default a warm process forks the server, see
            `tests/support/warm.py`.
        environment: more variables for the process.
    """
    address = database if isinstance(database, str) else f"sqlite:///{database}"
    words = ["serve", "--listen", "127.0.0.1:0", "--database", address, *options]
    variables = {**os.environ, **environment}
    if moorage is None and not any(name.startswith("PYTHON") for name in environment):
        return Server(words, variables, forked=True)
    return Server([*(moorage or MOORAGE), *words], variables)
