"""Starts commands of Moorage as processes of their own that need not import everything again.

A process that has imported Moorage forks for each of them. Each executes `python -m moorage` with
its own arguments, environment, folder and output, in a session of its own. It is a child of this
process, and is stopped and killed like any other. Only its modules were imported before: tests of
starts, of memory and of imports start a Python of their own.
"""

import array
import asyncio
import ctypes
import functools
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.e2e.support.server import MOORAGE, Server, serving
from tests.support.guard import ended

PR_SET_CHILD_SUBREAPER = 36
ROOT = Path(__file__).parents[2]


class Forker:
    """The process that forks. It ends when this one does: then their socket closes."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._socket, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forker", str(other.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )

    def fork(self, command: Mapping[str, Any], *files: int) -> int:
        """Start a command with these files as its input, output and errors; return its process.

        Its parent ends at once, while this process adopts orphans. Raises OSError.
        """
        text = json.dumps(command).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        with self._turn:
            _adopt_orphans(1)
            try:
                self._socket.sendmsg([len(text).to_bytes(4, "big")], rights)
                self._socket.sendall(text)
                answer = self._socket.recv(4)
            finally:
                _adopt_orphans(0)
        if not answer:
            raise OSError("the process that forks has ended")
        return int.from_bytes(answer, "big")


@functools.cache
def _forker() -> Forker:
    return Forker()


def _adopt_orphans(on: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


class Forked(subprocess.Popen[str]):
    """A command that was forked; `output` and `errors` are the files that it writes to."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: Path | None,
        output: int,
        errors: int,
    ) -> None:
        assert (*command[:3],) == MOORAGE, "only commands of Moorage are forked"
        self.args, self.returncode = command, None  # type: ignore[assignment] # it runs
        self.stdin = self.stdout = self.stderr = None
        self._one = threading.Lock()
        wanted = {
            "words": command[len(MOORAGE) :],
            "environment": dict(os.environ if env is None else env),
            "directory": str(cwd or Path.cwd()),
        }
        with open(os.devnull, "rb") as nothing:
            self.pid = _forker().fork(wanted, nothing.fileno(), output, errors)

    def poll(self) -> int | None:
        """See Popen."""
        with self._one:
            if self.returncode is None and os.waitid(
                os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
            ):
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """See Popen."""
        if self.poll() is None:
            process = os.pidfd_open(self.pid)
            try:
                if not ended(process, timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            finally:
                os.close(process)
        code = self.poll()
        assert code is not None
        return code


def serve(database: Path | str, *options: str, **environment: str) -> Server:
    """Start `moorage serve` on a free port; see `tests.e2e.support.server.serve`."""
    variables = {**os.environ, **environment}
    return Server(serving(database, *options), variables, start=_started)


def started(command: Sequence[str], ready: re.Pattern[str]) -> Server:
    """Start another server of Moorage's, such as a gate."""
    return Server(command, ready=ready, start=_started)


def _started(command: Sequence[str], **how: Any) -> Forked:
    read, write = os.pipe()
    with open(write, "wb"):
        process = Forked(command, how["env"], how["cwd"], write, write)
    process.stdout = os.fdopen(read, encoding="utf-8", errors="replace")
    return process


async def process(*command: str, env: Mapping[str, str], errors: bool = True) -> "ForkedProcess":
    """Start a command; its output, and its errors unless they are those of this process, are piped.

    It is what `asyncio.create_subprocess_exec` does.
    """
    output, write = os.pipe()
    piped, errors_write = os.pipe() if errors else (None, os.dup(2))
    with open(write, "wb"), open(errors_write, "wb"):
        made = await asyncio.to_thread(Forked, command, env, None, write, errors_write)
    return await ForkedProcess(made).connect(output, piped)


class ForkedProcess(asyncio.subprocess.Process):
    """A command that was forked, with the methods of asyncio's processes."""

    def __init__(self, process: Forked) -> None:
        self._process, self.pid = process, process.pid
        self.stdin = self.stdout = self.stderr = None

    async def connect(self, output: int, errors: int | None) -> Self:
        """Read the pipes of its output and errors from now on."""
        self.stdout = await _stream(output)
        self.stderr = None if errors is None else await _stream(errors)
        return self

    @property
    def returncode(self) -> int | None:  # type: ignore[override] # of Process it is one, too
        """See Process."""
        return self._process.poll()

    async def wait(self) -> int:
        """See Process."""
        if self._process.poll() is None:
            loop, process = asyncio.get_running_loop(), os.pidfd_open(self.pid)
            done = asyncio.Event()
            loop.add_reader(process, done.set)
            try:
                await done.wait()
            finally:
                loop.remove_reader(process)
                os.close(process)
        return self._process.wait()

    def send_signal(self, signal: int) -> None:
        """See Process."""
        self._process.send_signal(signal)

    def terminate(self) -> None:
        """See Process."""
        self._process.terminate()

    def kill(self) -> None:
        """See Process."""
        self._process.kill()

    async def communicate(self, input: Any = None) -> tuple[bytes, bytes]:
        """See Process."""
        assert self.stdout is not None
        output = asyncio.ensure_future(self.stdout.read())
        errors = b"" if self.stderr is None else await self.stderr.read()
        found = await output, errors
        await self.wait()
        return found


async def _stream(pipe: int) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(stream)
    file = os.fdopen(pipe, "rb")  # the transport closes it
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
    return stream
