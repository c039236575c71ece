"""Sends requests one at a time or all at once to a server process, and waits until it is idle.

The server is stopped (SIGSTOP) while requests are sent, so that it finds all of them at once when
it continues, whatever else the machine does meanwhile. It is idle when all its threads sleep.
"""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from bench.wire import Answer
from tests.budgets.counting import Count, Reading
from tests.support.guard import Guard

ROOT = Path(__file__).resolve().parents[2]
SERVING = re.compile(r"moorage: serving http://(\S+) ")
BOSKOS = re.compile(r"moorage: http://(\S+) is for clients of Boskos")
IDLE_LOOKS = 3
"""How often in a row all threads must sleep: a thread may be about to wake another one."""

PATIENCE_SECONDS = 60.0
CONNECTIONS = 32

COUNTS, DATABASE, LOG = "counts", "budgets.sqlite", "log"
"""Files of a server."""

BOSKOS_TYPE = "budget"
BOSKOS_FILE = f"""\
resources:
- type: {BOSKOS_TYPE}
  state: free
  names: [one]
"""


class Server:
    """A counted server, and connections to it."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        """Wait until it serves; `folder` has its files."""
        assert process.stdout is not None
        self.pid = process.pid
        self._places: dict[bool, str] = {}
        for line in process.stdout:
            if found := BOSKOS.search(line):
                self._places[True] = found[1]
            if found := SERVING.search(line):
                self._places[False] = found[1]
                break
        log = (folder / LOG).read_text()
        assert False in self._places, f"it does not serve: {log[-2_000:]}"
        self._token = (folder / f"{DATABASE}.token").read_text().strip()
        self._reading = Reading(folder / COUNTS)
        self._open: dict[bool, list[socket.socket]] = {False: [], True: []}

    def close(self) -> None:
        """Close all connections and files."""
        self._reading.close()
        for connections in self._open.values():
            for connection in connections:
                connection.close()

    def ask(
        self, requests: Sequence[bytes], *, boskos: bool = False
    ) -> tuple[list[Answer], Counter[Count]]:
        """Send requests at once, each on a connection of its own.

        Returns their answers, and what the server counted until it had nothing more to do.
        """
        connections = self._connections(boskos, len(requests))
        self._stop()
        before = self._reading.now()
        rest: list[tuple[socket.socket, bytes]] = []
        for connection, request in zip(connections, map(self._named, requests), strict=True):
            rest.append((connection, request[connection.send(request) :]))
        os.kill(self.pid, signal.SIGCONT)
        for connection, unsent in rest:
            connection.sendall(unsent)  # what did not fit into the buffers
        answers = [_answer(connection) for connection in connections]
        self._idle()
        return answers, self._reading.now() - before

    def _connections(self, boskos: bool, number: int) -> list[socket.socket]:
        """Return connections that stay open: the timers that would close them rest."""
        where = urlsplit(f"http://{self._places[boskos]}")
        opened = self._open[boskos]
        while len(opened) < number:
            assert where.hostname and where.port
            opened.append(socket.create_connection((where.hostname, where.port), PATIENCE_SECONDS))
        return opened[:number]

    def _named(self, request: bytes) -> bytes:
        return request.replace(b"X-Auth-Token: admin", f"X-Auth-Token: {self._token}".encode(), 1)

    def _stop(self) -> None:
        """Stop it while it is idle, and return when it has stopped."""
        self._idle()
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def _idle(self) -> None:
        """Return when all threads have slept at several looks in a row."""
        until = monotonic() + PATIENCE_SECONDS
        looks = 0
        while looks < IDLE_LOOKS:
            assert monotonic() < until, "the server never becomes idle"
            looks = looks + 1 if set(self._states()) <= {"S"} else 0

    def _states(self) -> Iterator[str]:
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                yield (task / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:  # the thread has just ended
                yield "X"


def _answer(connection: socket.socket) -> Answer:
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        return Answer(response.status, response.read())


@contextmanager
def serve(folder: Path, *, planted: int = 0, counted: bool = True) -> Iterator[Server]:
    """Start a server with an empty database; see `counted_server.py`."""
    boskos = folder / "boskos.yaml"
    boskos.write_text(BOSKOS_FILE)
    arguments = [str(folder / COUNTS), f"sqlite:///{folder / DATABASE}", str(boskos)]
    arguments += [str(planted), str(int(counted))]
    known = {name: value for name, value in os.environ.items() if not name.startswith("MOORAGE_")}
    with (
        (folder / LOG).open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.budgets.counted_server", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={**known, "PYTHONHASHSEED": "0"},
        ) as process,
    ):
        guard = Guard(process.pid, "KILL")
        try:
            server = Server(process, folder)
            try:
                yield server
            finally:
                server.close()
        finally:
            guard.close()
            process.kill()  # the timers that would let it end rest
