"""Measures how long each request blocks the event loop of a service with a large fleet."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.fleet import FLAT, identifier
from bench.held import PREFIX, LongestCallback
from bench.loop import probes
from bench.loop.probes import Probe, Sizes
from bench.target import READY
from bench.wire import Answer, ask, request, sign_in

HELD_MILLISECONDS_MAX = 50.0
"""The processor time that one callback may use."""


class MeasuredServer:
    """A server with a measured event loop."""

    def __init__(self, database: str, directory: Path) -> None:
        self._log = (directory / "held.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.held", "127.0.0.1:0", database, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.url = ""
        for line in self._lines():
            found = READY.search(line)
            if found:
                self.url = found[1]
                break

    def _lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield line.decode(errors="replace")

    def take(self) -> LongestCallback:
        """Return the longest callback since the last call."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        for line in self._lines():
            if line.startswith(PREFIX):
                return LongestCallback(**json.loads(line.removeprefix(PREFIX)))
        raise RuntimeError("the server has ended")

    def close(self) -> None:
        """Stop the server."""
        self.process.terminate()
        self.process.communicate()
        self._log.close()


@contextmanager
def measured_server(database: str, directory: Path) -> Iterator[MeasuredServer]:
    """Serve a database with a measured event loop."""
    server = MeasuredServer(database, directory)
    try:
        yield server
    finally:
        server.close()


async def send_all(url: str, requests: Iterator[bytes]) -> None:
    """Send requests one after another; raise RuntimeError if one fails."""
    for one in requests:
        answer = await ask(url, one)
        if answer.status >= 300:
            raise RuntimeError(f"{one[:80]!r}: {answer.status} {answer.body[:300]!r}")


async def measure(
    server: MeasuredServer, probes: Iterable[Probe]
) -> AsyncIterator[tuple[Probe, Answer, LongestCallback]]:
    """Send the probes one after another; yield each with its answer and the longest callback."""
    for one in probes:
        server.take()
        answer = await ask(server.url, one.raw)
        yield one, answer, server.take()


@dataclass(frozen=True)
class Line:
    """A request, the status of its answer, and the longest callback meanwhile."""

    what: str
    status: int
    held: LongestCallback

    def __str__(self) -> str:
        return f"{self.what}: {self.held.milliseconds:.0f} ms"


async def lines(server: MeasuredServer, sizes: Sizes) -> list[Line]:
    """Create the large objects, then send all probes; return the longest callbacks first."""
    await send_all(server.url, probes.large_objects(sizes))
    await send_all(server.url, probes.line(sizes))
    found = []
    async for one, answer, held in measure(
        server, probes.all_probes(sizes, sign_in(server.url, "admin"))
    ):
        found.append(Line(f"{one.method} {one.route} ({one.what})", answer.status, held))
    return in_order(found)


async def follow(one: MeasuredServer, other: MeasuredServer, url: str, sizes: Sizes) -> list[Line]:
    """Measure how a server follows a large commit of another one, and how it reloads."""
    look = request("GET", f"/resource_providers/{identifier(FLAT, 0)}")
    found = []
    for what in ("catching up", "reload"):
        if what == "reload":
            await simulate_failover(url)
        else:
            await send_all(one.url, probes.churn(sizes))
        other.take()
        answer = await ask(other.url, look)
        found.append(Line(what, answer.status, other.take()))
    return in_order(found)


async def simulate_failover(url: str) -> None:
    """Change a PostgreSQL database as if it had been restored to an older state and used again."""
    async with await psycopg.AsyncConnection.connect(url) as server:
        await server.execute(
            "UPDATE change SET at = at + 1 WHERE revision = (SELECT revision FROM clock)"
        )
        await server.execute("UPDATE clock SET epoch = epoch + 1")


def in_order(found: list[Line]) -> list[Line]:
    """Return lines sorted by their longest callbacks, descending."""
    return sorted(found, key=lambda line: -line.held.milliseconds)
