"""Services to measure: each has addresses and processes, and can be started and stopped."""

import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench import machine
from bench.fleet import Fleet
from tests.support.cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
"""The root of this checkout."""
READY = re.compile(r"serving (http://\S+)")
READY_SECONDS = 120.0
STOP_SECONDS = 30.0


class NotStarted(Exception):
    """The service does not start; the message gives the reason."""


class Unusable(Exception):
    """The service does not do what the measurement needs; the message gives the reason."""


@dataclass(frozen=True)
class Storage:
    """Where a service keeps its data: in a file, or in a PostgreSQL cluster."""

    directory: Path
    name: str
    cluster: Cluster | None = None

    @property
    def engine(self) -> str:
        """The name of the engine in reports."""
        return "SQLite" if self.cluster is None else "PostgreSQL"

    @property
    def file(self) -> Path:
        """The database file, if the engine is SQLite."""
        return self.directory / f"{self.name}.sqlite"

    def roots(self) -> list[int]:
        """Return the ids of the parent processes of the database."""
        if self.cluster is None:
            return []
        return [int((self.cluster.data / "postmaster.pid").read_text().split()[0])]


class Target:
    """A service under measurement; a context manager that starts and stops it."""

    peer = False
    """Whether the others are compared with it."""
    keeps = True
    """Whether it keeps a connection open after an answer."""
    name = ""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.urls: list[str] = []
        self.processes: list[subprocess.Popen[bytes]] = []

    def roots(self) -> list[int]:
        """Return the ids of the parent processes of the service."""
        return [process.pid for process in self.processes]

    def processor_seconds(self) -> tuple[float, float]:
        """Return the processor time used so far by the service and by its database."""
        return (
            machine.processor_seconds(self.roots()),
            machine.processor_seconds(self.storage.roots()),
        )

    def memory_bytes(self) -> tuple[int, int]:
        """Return the memory of the service and of its database."""
        return machine.memory_bytes(self.roots()), machine.memory_bytes(self.storage.roots())

    def fill(self, fleet: Fleet) -> int:
        """Load the missing hosts of a fleet without HTTP; return how many were missing."""
        raise NotImplementedError(f"{self.name} loads everything over HTTP, not {fleet.name}")

    def diagnosis(self) -> str:
        """Return the exit codes of the processes, and the ends of their logs."""
        codes = [process.poll() for process in self.processes]
        logs = sorted(self.storage.directory.glob(f"{self.storage.name}*.log"))
        ends = " ".join(log.read_text(errors="replace")[-1_000:] for log in logs)
        return f"exit codes {codes}, log: {ends}"

    def start(self) -> None:
        """Start the service and wait until it serves. Raises NotStarted."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop every process with SIGTERM, or with SIGKILL if that has no effect."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()
        self.urls.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Moorage(Target):
    """One or several processes of `moorage serve` on one database.

    `source` is a checkout of the version to serve; None means the installed one. `python` is the
    interpreter of its environment.
    """

    def __init__(
        self,
        storage: Storage,
        count: int = 1,
        source: Path | None = None,
        python: Path = Path(sys.executable),
    ) -> None:
        super().__init__(storage)
        self.count = count
        self.source = source
        self.python = python
        several = f", {count} processes" if count > 1 else ""
        self.name = f"Moorage, {storage.engine}{several}"

    def start(self) -> None:
        """Start the processes in turn: the first creates the schema. Raises NotStarted."""
        for number in range(self.count):
            self._start(number)

    def database(self) -> str:
        """Return the address of the database."""
        storage = self.storage
        if storage.cluster is None:
            return f"sqlite:///{storage.file}"
        return storage.cluster.url(storage.name)

    def _start(self, number: int) -> None:
        storage = self.storage
        database = self.database()
        command = [str(self.python), "-m", "moorage", "serve", "--listen", "127.0.0.1:0"]
        command += ["--database", database, "--auth", "noauth2"]
        log = storage.directory / f"{storage.name}-{number}.log"
        with log.open("wb") as log_file:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log_file,
                cwd=storage.directory,
                env=_environment(self.source),
            )
        self.processes.append(process)
        ready = threading.Event()
        threading.Thread(target=self._read, args=(process, ready), daemon=True).start()
        if not ready.wait(READY_SECONDS) or len(self.urls) != number + 1:
            self.stop()
            raise NotStarted(f"{self.name} does not start: {log.read_text()[-2_000:]}")

    def _read(self, process: subprocess.Popen[bytes], ready: threading.Event) -> None:
        """Find the address in the output of the server, and keep its pipe empty."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if not ready.is_set() and (found := READY.search(line.decode(errors="replace"))):
                    self.urls.append(found[1])
                    ready.set()
        ready.set()


def _environment(source: Path | None) -> dict[str, str]:
    """Return the environment without the caller's Moorage settings, for the version in `source`."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    return known if source is None else {**known, "PYTHONPATH": str(source / "src")}
