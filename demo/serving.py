"""The server of the example, and its folder: both are gone after the end, even after `kill -9`."""

import fcntl
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from demo.stopping import Stop

READY = re.compile(r"moorage: serving (http://\S+) ")
PREFIX = "moorage-demo-"
LOCK = "lock"
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.1

MEMORY = Path("/dev/shm")
ROOM = 1 << 30
"""Bytes that must be free there: an example of an hour takes a small part of them."""


class NotServedError(Exception):
    """The server cannot start; the message says what to change."""


def check_free(listen: str) -> None:
    """Raise NotServedError if an address is taken: before the past is made, not after."""
    host, _, port = listen.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise NotServedError(f"--listen {listen}: write HOST:PORT, for example 127.0.0.1:9000")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
    except OSError as error:
        raise NotServedError(
            f"cannot serve on {listen}: {error.strerror}; is another example or server running?"
            ' Choose another port, or 0 for a free one: make demo ARGS="--listen 127.0.0.1:0"'
        ) from None


def _above() -> Path:
    """Return where folders are made: in memory if there is room, unless the user has chosen."""
    chosen = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    with suppress(OSError):
        if not chosen and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
            return MEMORY
    return Path(tempfile.gettempdir())


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for the ledger, and remove those of examples that were killed."""
    above = _above()
    for stale in above.glob(f"{PREFIX}*"):
        with suppress(OSError), (stale / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its example lives
            shutil.rmtree(stale)
    with TemporaryDirectory(prefix=PREFIX, dir=above) as name:
        folder = Path(name)
        with (folder / "new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "new").rename(folder / LOCK)  # nobody sees it before it is locked
            yield folder


@contextmanager
def served(folder: Path, database: str, listen: str, stop: Stop) -> Iterator["Served"]:
    """Start a server with a database. Raises NotServedError."""
    command = [
        sys.executable,
        "-m",
        "demo.server_process",
        str(os.getpid()),
        "serve",
        "--listen",
        listen,
    ]
    command += ["--database", database, "--no-access-log", "--log-level", "error"]
    log = folder / "serve.log"
    # A session of its own: Ctrl-C reaches this process, which then stops the server. Its log would
    # hide the address: the audit log of the fleet has hundreds of lines.
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Served(_address(process, log, stop), process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:  # it has more to do than anybody waits for
                process.kill()


class Served(NamedTuple):
    """A server that runs."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def check(self) -> None:
        """Raise NotServedError if it has ended."""
        if self.process.poll() is not None:
            said = self.log.read_text().rstrip()
            raise NotServedError(f"the server has ended ({self.process.returncode}):\n{said}")


def _address(process: subprocess.Popen[str], log: Path, stop: Stop) -> str:
    """Wait for the server; return its address."""
    assert process.stdout is not None
    while True:
        stop.check()
        if select.select([process.stdout], [], [], LOOK_SECONDS)[0]:
            line = process.stdout.readline()
            if found := READY.match(line):
                return found[1]
            if not line:
                raise NotServedError(f"the server does not start:\n{log.read_text().rstrip()}")
