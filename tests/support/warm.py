"""Real processes of `moorage` that start quickly: forked from one that has imported the code.

Most of the processor time of a short command, or of a server's start, are imports. So each process
of tests has *warm* processes (`warm_process.py`), which have everything imported, and fork for each
command. The fork is a process like any other: with its own descriptors, folder, environment,
signals and exit code. Only the start of the interpreter is left out, and with it the variables that
it reads (`PYTHON*`, `LC_*`); tests of it, of terminals and of the single file start the interpreter
themselves.
"""

import asyncio
import atexit
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]

ORDER_BYTES_MAX = 1 << 17
"""The longest command line with its environment."""


class Forked:
    """A process that a warm process has forked, with the methods of `subprocess.Popen`.

    `pid` is its number, `returncode` its exit code: negative, the signal that ended it; None while
    it runs.
    """

    def __init__(self, status: int) -> None:
        """Read the number of the process from its status pipe, which is closed when it is over."""
        self._status = status
        self._lock = threading.Lock()
        self.returncode: int | None = None
        told = os.read(status, 5)
        assert told[:1] == b"p", "it could not be started: see the errors of this process"
        self.pid = int.from_bytes(told[1:], "big")

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the process has ended."""
        return self._status

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with self._lock:
            if self.returncode is None and _readable(self._status, 0):
                told = os.read(self._status, 5)
                os.close(self._status)
                if not told:  # the warm process has ended, and nobody else would end this one
                    with suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGKILL)
                self.returncode = int.from_bytes(told[1:], "big", signed=True) if told else -9
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when it has ended. Raises subprocess.TimeoutExpired."""
        if self.poll() is None:
            _readable(self._status, timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("moorage", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ends right now
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _readable(descriptor: int, seconds: float | None) -> bool:
    """Return whether there is something to read within this time; `select` knows only 1,024."""
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    return bool(ready.poll(None if seconds is None else seconds * 1_000))


class _Warm:
    """This process's end of the warm process, which is started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None

    def control(self) -> socket.socket:
        """Return the socket on which it takes orders."""
        with self._lock:
            if self._control is None:
                ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with its:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "tests.support.warm_process", str(its.fileno())],
                        cwd=ROOT,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        pass_fds=[its.fileno()],
                    )
                self._control = ours
                atexit.register(self._end, process)
            return self._control

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if self._control is not None:
            self._control.close()
        process.wait()


_for_commands = _Warm()
_for_servers = itertools.cycle((_for_commands, _Warm()))
"""Two in turn: servers that share a database have different seeds of hashes, as real ones have."""


def fork(
    arguments: Sequence[str],
    stdout: int,
    stderr: int,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    session: bool = False,
) -> Forked:
    """Start `moorage` with these arguments and nothing on its standard input.

    Args:
        arguments: the command line, without the program.
        stdout: the descriptor of its standard output; the caller closes it.
        stderr: the descriptor of its standard error; the caller closes it.
        directory: where it runs; by default where this process does.
        environment: all its variables; by default those of this process.
        session: whether it leads a session of its own.
    """
    control = (next(_for_servers) if session else _for_commands).control()
    variables = dict(os.environ if environment is None else environment)
    directory = directory or Path.cwd()
    assert directory.is_dir(), directory
    order = json.dumps([[*arguments], str(directory), variables, session]).encode()
    assert len(order) < ORDER_BYTES_MAX, "too long a command line, or environment"
    ours, its = os.pipe()
    try:
        socket.send_fds(control, [order], [stdout, stderr, its])
    finally:
        os.close(its)
    return Forked(ours)


def run(
    arguments: Sequence[str],
    seconds: float,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `moorage` with these arguments until it exits, like `subprocess.run` with its output.

    Raises:
        subprocess.TimeoutExpired: it was ended, because it took longer than `seconds`.
    """
    (out, its_out), (err, its_err) = os.pipe(), os.pipe()
    try:
        process = fork(arguments, its_out, its_err, directory, environment)
    finally:
        os.close(its_out)
        os.close(its_err)
    said: dict[int, bytes] = {out: b"", err: b""}
    still = select.poll()
    for one in said:
        still.register(one)
    left = len(said)
    deadline = monotonic() + seconds
    try:
        while left:
            ready = still.poll(max(deadline - monotonic(), 0) * 1_000)
            if not ready:
                raise subprocess.TimeoutExpired(["moorage", *arguments], seconds, *said.values())
            for one, _ in ready:
                read = os.read(one, 65_536)
                said[one] += read
                if not read:
                    still.unregister(one)
                    left -= 1
        code = process.wait(max(deadline - monotonic(), 0))
    finally:
        process.kill()
        process.wait()
        os.close(out)
        os.close(err)
    return subprocess.CompletedProcess([*arguments], code, said[out].decode(), said[err].decode())


class AsyncForked(asyncio.subprocess.Process):
    """A forked process, with the methods of the processes of asyncio."""

    def __init__(self, process: Forked) -> None:
        """Wrap a process."""
        self._process, self.pid = process, process.pid
        self.stdin = self.stdout = self.stderr = None

    async def connect(self, output: int, errors: int | None) -> Self:
        """Read these pipes as its output and errors from now on."""
        self.stdout = await _stream(output)
        self.stderr = None if errors is None else await _stream(errors)
        return self

    @property
    def returncode(self) -> int | None:  # type: ignore[override] # there it is an attribute
        """The exit code; None while it runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Return the exit code when it has ended."""
        if self._process.poll() is None:
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            status = os.dup(self._process.fileno())  # reading the exit code closes the other
            loop.add_reader(status, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(status)
                os.close(status)
        return self._process.wait()

    def send_signal(self, signal: int) -> None:
        """Send a signal, unless it has ended."""
        self._process.send_signal(signal)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    async def communicate(self, input: Any = None) -> tuple[bytes, bytes]:
        """Read all of its output and errors, and wait for its end."""
        streams = [one for one in (self.stdout, self.stderr) if one is not None]
        said = await asyncio.gather(*(one.read() for one in streams))
        await self.wait()
        return said[0], b"".join(said[1:])


async def fork_async(
    arguments: Sequence[str], environment: Mapping[str, str], *, errors: bool = True
) -> AsyncForked:
    """Start `moorage` with its output piped, and its errors, unless they are those of the test."""

    def forked() -> tuple[Forked, int, int | None]:
        output, its_output = os.pipe()
        piped, its_errors = os.pipe() if errors else (None, os.dup(2))
        try:
            process = fork(arguments, its_output, its_errors, environment=environment)
        finally:
            os.close(its_output)
            os.close(its_errors)
        return process, output, piped

    process, output, piped = await asyncio.to_thread(forked)
    return await AsyncForked(process).connect(output, piped)


async def _stream(pipe: int) -> asyncio.StreamReader:
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream),
        os.fdopen(pipe, "rb"),  # the transport closes it
    )
    return stream
