"""A machine for containers: a network with only loopback, and processes that end with the test.

So the ports that images listen on by default are free, and a test that is killed leaves nothing.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
READY = "up\n"
SECONDS = 280.0


class Machine:
    """Namespaces of the network, of processes and of mounts; use it as a context manager."""

    def __init__(self) -> None:
        """Begin them. Raises AssertionError: this machine does not permit it."""
        words = ["unshare", "--net", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"]
        self._first = subprocess.Popen(
            [*words, sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == READY, "unshare needs root"
        below = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text()
        self.enter = ("nsenter", "--target", below.strip(), "--net", "--pid", "--mount", "--")
        """The words before a command that runs on it."""

    def run(
        self, words: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command until it ends."""
        return subprocess.run(
            [*self.enter, *words],
            env=os.environ if environment is None else {**environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._first.communicate()
        assert self._first.returncode == 0


def main() -> None:
    """Switch loopback on, and stay until the other end of standard input is closed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", IFF_UP | IFF_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
