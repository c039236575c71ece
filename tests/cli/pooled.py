"""The command line in the folder of a server, and a command at a terminal."""

import os
import pty
import re
import select
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.cli.command import COMMAND, SECONDS, answer, moorage, refusal

SIZE = ("COLUMNS", "LINES")
"""Environment variables that override the size of a terminal."""

STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Cli:
    """The command line in a folder whose settings name a server's database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        token = (folder / "moorage.sqlite.token").read_text().strip()
        self.transport = Transport(url, token)
        self.admission = Admission(self.transport)

    def answer(self, *arguments: str) -> Any:
        """Run a command with `--json` that succeeds; return the parsed output."""
        return answer(*arguments, directory=self.folder)

    def lines(self, *arguments: str) -> list[str]:
        """Run a command without `--json` that succeeds; return the lines of its output."""
        done = moorage(*arguments, directory=self.folder)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()

    def refusal(self, code: int, *arguments: str) -> str:
        """Run a command that fails; return its one line of standard error."""
        return refusal(code, *arguments, directory=self.folder)

    def ask(self, *pools: str, **wanted: Any) -> str:
        """Ask for a unit of each pool; return the lease's id."""
        needs = [NeedWanted(pool=pool) for pool in pools]
        return self.admission.ask(LeaseWanted(needs=needs, key=str(uuid4()), **wanted)).id


@contextmanager
def at_terminal(
    folder: Path, *arguments: str, columns: int = 200
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command at a terminal; yield its process and the terminal's other end."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in SIZE}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**inherited, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def read_until(terminal: int, words: bytes) -> bytes:
    """Read from a terminal until these words appear; return everything read."""
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], SECONDS)
        assert ready, seen
        seen += os.read(terminal, 65_536)
    return seen


def exit_code_of(process: subprocess.Popen[bytes], terminal: int) -> int:
    """Wait until a command exits, reading its output meanwhile; return its exit code."""
    deadline = monotonic() + SECONDS
    while process.poll() is None:
        assert monotonic() < deadline
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65_536)
    return process.returncode


def lines_at_terminal(folder: Path, *arguments: str, columns: int) -> list[str]:
    """Run a command at a terminal until it exits; return the lines of its output."""
    seen = b""
    with at_terminal(folder, *arguments, columns=columns) as (process, terminal):
        deadline = monotonic() + SECONDS
        while True:
            over = process.poll() is not None
            if select.select([terminal], [], [], 0.05)[0]:
                seen += os.read(terminal, 65_536)
            elif over:
                break
            assert monotonic() < deadline
        assert process.returncode == 0, seen
    return [line.rstrip() for line in STYLES.sub("", seen.decode()).splitlines()]
