"""A primary with a synchronous standby dies under load and the standby takes over.

Nothing acknowledged is lost, nothing is done twice, and the servers continue by themselves.
"""

import asyncio
import os
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tests.e2e.support.load import Book, Client, compare, stock
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import serve
from tests.support.cluster import Cluster

pytestmark = pytest.mark.thorough

FAILOVERS = 5 if os.environ.get("MOORAGE_SOAK") else 1
CLIENTS = 32


class Pair:
    """A primary and the standby without which it commits nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.primary = Cluster(folder / "a", durable=True)
        self.address = f"{self.primary.create('moorage')},{folder / 'b'}"
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.standby = Cluster(folder / "b", durable=True, primary=self.primary)
        self.primary.restart()

    def fail_over(self) -> None:
        """Crash the primary, promote the standby, and give it a standby in the other's place."""
        dead, self.primary = self.primary, self.standby
        dead.stop("immediate")
        self.primary.promote()
        shutil.rmtree(dead.data)
        self.standby = Cluster(dead.folder, durable=True, primary=self.primary)

    def close(self) -> None:
        """Stop both."""
        self.standby.close()
        self.primary.close()


async def _acknowledged(url: str, book: Book, count: int) -> None:
    """Wait until this many more writes are acknowledged."""
    target = book.statuses[204] + count
    async with Peer(url) as peer:
        while book.statuses[204] < target:
            await peer.call("GET", "/healthz")


async def _fail_over_under_load(pair: Pair, urls: list[str]) -> tuple[Book, list[float]]:
    async with Peer(urls[0]) as peer:
        providers = await stock(peer, 8, 10_000_000)
    book, enough, stalls = Book(), asyncio.Event(), []
    clients = [Client(urls[n % 2], book, providers, n) for n in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.work(enough))
        for _ in range(FAILOVERS):
            await _acknowledged(urls[0], book, 300)
            begun = time.monotonic()
            await asyncio.to_thread(pair.fail_over)
            await _acknowledged(urls[0], book, 1)
            stalls.append(time.monotonic() - begun)
        await _acknowledged(urls[0], book, 300)
        enough.set()
    await compare(urls, book, providers)
    for url in urls:
        async with Peer(url) as peer:
            assert await differences(peer) == []
    return book, stalls


def test_failover_under_load(capsys: pytest.CaptureFixture[str]) -> None:
    """The service stalls, then continues with every acknowledged write, each of them once."""
    with TemporaryDirectory(prefix="moorage-pg-") as folder:
        Path(folder).chmod(0o755)
        pair = Pair(Path(folder))
        try:
            options = ("--auth", "noauth2", "--no-access-log")
            with serve(pair.address, *options) as one, serve(pair.address, *options) as other:
                book, stalls = asyncio.run(_fail_over_under_load(pair, [one.url, other.url]))
        finally:
            pair.close()
    with capsys.disabled():
        told = ", ".join(f"{stall:.1f} s" for stall in stalls)
        print(f"failover: stalls {told}; {dict(book.statuses)}")  # noqa: T201 what a soak is for
