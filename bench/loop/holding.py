"""How long each request holds the event loop of a service with a large fleet."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.fleet import FLAT, identifier
from bench.held import PREFIX, Held
from bench.loop import probes
from bench.loop.probes import Asked, Sizes
from bench.target import READY
from bench.wire import Answer, ask, request

HELD_MILLISECONDS_MAX = 50.0
"""Of processor time of the loop's thread, in one callback."""


class Watched:
    """A server on a loop that is watched."""

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

    def taken(self) -> Held:
        """Return the longest callback since the last call."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        for line in self._lines():
            if line.startswith(PREFIX):
                return Held(**json.loads(line.removeprefix(PREFIX)))
        raise RuntimeError("the server has ended")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate()
        self._log.close()


@contextmanager
def watched(database: str, directory: Path) -> Iterator[Watched]:
    """Serve a database on a watched loop."""
    server = Watched(database, directory)
    try:
        yield server
    finally:
        server.close()


async def made(url: str, requests: Iterator[bytes]) -> None:
    """Send requests one after the other; each must succeed."""
    for one in requests:
        answer = await ask(url, one)
        if answer.status >= 300:
            raise RuntimeError(f"{one[:80]!r}: {answer.status} {answer.body[:300]!r}")


async def measured(
    server: Watched, probes: Iterable[Asked]
) -> AsyncIterator[tuple[Asked, Answer, Held]]:
    """Send requests one after the other; return each status, and the longest callback."""
    for one in probes:
        server.taken()
        answer = await ask(server.url, one.raw)
        yield one, answer, server.taken()


@dataclass(frozen=True)
class Line:
    """What was asked, what was answered, and the longest callback meanwhile."""

    what: str
    status: int
    held: Held

    def __str__(self) -> str:
        return f"{self.what}: {self.held.milliseconds:.0f} ms"


async def lines(server: Watched, much: Sizes) -> list[Line]:
    """Create what grows without a bound, then request all of it; the longest first."""
    await made(server.url, probes.special(much))
    await made(server.url, probes.line(much))
    found = []
    async for one, answer, held in measured(server, probes.everything(much)):
        found.append(Line(f"{one.method} {one.route} ({one.what})", answer.status, held))
    return in_order(found)


async def following(one: Watched, other: Watched, url: str, much: Sizes) -> list[Line]:
    """Let one process commit much while the other follows it, then reload everything."""
    look = request("GET", f"/resource_providers/{identifier(FLAT, 0)}")
    found = []
    for what in ("catching up", "reload"):
        if what == "reload":
            await another_history(url)
        else:
            await made(one.url, probes.churn(much))
        other.taken()
        answer = await ask(other.url, look)
        found.append(Line(what, answer.status, other.taken()))
    return in_order(found)


async def another_history(url: str) -> None:
    """Make a PostgreSQL ledger look as if another server had continued from an older state."""
    async with await psycopg.AsyncConnection.connect(url) as server:
        await server.execute(
            "UPDATE change SET at = at + 1 WHERE revision = (SELECT revision FROM clock)"
        )
        await server.execute("UPDATE clock SET epoch = epoch + 1")


def in_order(found: list[Line]) -> list[Line]:
    """Return lines, the longest callback first."""
    return sorted(found, key=lambda line: -line.held.milliseconds)
