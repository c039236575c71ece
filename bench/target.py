"""What is measured: something with an address and processes, that can be started and stopped."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Protocol, Self

READY = re.compile(r"serving (http://\S+)")
READY_SECONDS = 60.0
STOP_SECONDS = 20.0


class Target(Protocol):
    """A service under measurement; a context manager that starts and stops it."""

    name: str
    url: str

    def pids(self) -> list[int]:
        """The processes whose processor time counts as the service's."""
        ...

    def __enter__(self) -> Self:
        """Start it and wait until it serves."""
        ...

    def __exit__(self, *error: object) -> None:
        """Stop it."""
        ...


class Moorage:
    """A real `moorage serve` on SQLite, with its files in a directory of its own."""

    name = "moorage"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = ""
        self._ready = threading.Event()

    def pids(self) -> list[int]:
        """The one process of the server."""
        return [self._process.pid]

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "moorage", "serve", "--listen", "127.0.0.1:0"]
        command += ["--database", f"sqlite:///{self.directory / 'bench.sqlite'}"]
        command += ["--auth", "noauth2"]
        self._log = (self.directory / "bench.log").open("wb")
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=self.directory,
            env=_environment(),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(READY_SECONDS) or not self.url:
            self.__exit__()
            raise RuntimeError((self.directory / "bench.log").read_text() or "no ready line")
        return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(STOP_SECONDS)
        self._log.close()

    def _read(self) -> None:
        """Find the address in what the server says, and keep its pipe empty."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not self.url and (found := READY.search(line.decode(errors="replace"))):
                self.url = found[1]
                self._ready.set()
        self._ready.set()


def _environment() -> dict[str, str]:
    """The environment without settings of the caller's own Moorage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}


def processor_seconds(pids: list[int]) -> float:
    """Processor time that these processes have used so far, all threads, user and system."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
