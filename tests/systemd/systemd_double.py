"""What systemd does for a service, without systemd: records notifications, passes sockets."""

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.closing import Closing

SECONDS = 30.0

PASS = """
import fcntl, os, sys
count = int(sys.argv[1])
held = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[3 : 3 + count]]
for place, number in enumerate(held):
    os.dup2(number, 3 + place, inheritable=True)
    os.close(number)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(count)}
if sys.argv[2]:
    os.environ["LISTEN_FDNAMES"] = sys.argv[2]
os.execv(sys.argv[3 + count], sys.argv[3 + count :])
"""


def passing(command: Sequence[str], sockets: Mapping[str, socket.socket]) -> list[str]:
    """Return a command that runs another one with these sockets, by name, as systemd does.

    It must inherit them. A socket without a name is passed without names.
    """
    numbers = [str(one.fileno()) for one in sockets.values()]
    names = ":".join(sockets)
    return [sys.executable, "-c", PASS, str(len(numbers)), names, *numbers, *command]


class NotifySocket(Closing):
    """The socket that NOTIFY_SOCKET names; `received` has the notifications until now.

    Use it as a context manager.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Bind it in a folder; by default to an abstract name, which has no file."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if folder is None:
            self._socket.bind("")  # the kernel chooses an abstract name
            name = self._socket.getsockname()
            self.address = "@" + name[1:].decode()
        else:
            self.address = str(folder / "notify")
            self._socket.bind(self.address)
        self.received: list[dict[str, str]] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while data := self._socket.recv(65_536):
            lines = (line.partition("=") for line in data.decode().splitlines())
            with self._more:
                self.received.append({name: value for name, _, value in lines})
                self._more.notify_all()

    def variables(self, watchdog_seconds: float | None = None) -> dict[str, str]:
        """Return what systemd sets for the service."""
        found = {"NOTIFY_SOCKET": self.address}
        if watchdog_seconds is not None:
            found["WATCHDOG_USEC"] = str(round(watchdog_seconds * 1_000_000))
        return found

    def all_of(self, name: str) -> list[str]:
        """Return all values that were given to a name."""
        return [one[name] for one in [*self.received] if name in one]

    def wait_for(
        self, name: str, of: Callable[[str], bool] = lambda value: True, times: int = 1
    ) -> str:
        """Return a value of a name when one that is accepted has come this often."""

        def found() -> list[str]:
            return [value for value in self.all_of(name) if of(value)]

        with self._more:
            if not self._more.wait_for(lambda: len(found()) >= times, SECONDS):
                raise TimeoutError(f"{name} is not among {self.received}")
        return found()[-1]

    def silent_for(self, name: str, seconds: float, most: float = SECONDS) -> None:
        """Return when a name has not come for some seconds. Raises TimeoutError: it goes on."""
        for _ in range(round(most / seconds)):
            count = len(self.all_of(name))
            with self._more:
                if not self._more.wait_for(partial(self._has_more_than, count, name), seconds):
                    return
        raise TimeoutError(f"{name} still comes")

    def _has_more_than(self, count: int, name: str) -> bool:
        return len(self.all_of(name)) > count

    def close(self) -> None:
        """Read what has come until now, and close the socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._reader.join()
        self._socket.close()
        if self.address.startswith("/"):
            os.unlink(self.address)
