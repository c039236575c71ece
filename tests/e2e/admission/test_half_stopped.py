"""One of two servers is stopped in a transaction, while it has locks that others need."""

import asyncio
import os
import random
import signal
import sys
import time

import psycopg
import pytest

from tests.e2e.support.leasing import (
    LIMIT,
    NOAUTH,
    Book,
    Client,
    audit,
    everything_comes_back,
    granted,
    history,
    pool_made,
)
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import Server, serve
from tests.support import cluster

CLIENTS = 24
SILENT_SECONDS_MAX = 30.0
"""Slightly longer than the database allows a session to idle in a transaction."""

KEEPS = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND state = 'idle in transaction' AND application_name = 'moorage'
AND state_change < now() - interval '200ms'
"""


async def stopped_with_locks(server: Server, database: str, url: str, book: Book) -> None:
    """Stop a server again and again, until it is stopped in the middle of a transaction."""
    with psycopg.connect(database, autocommit=True) as watcher:
        while True:
            await granted(url, book, 1)
            os.kill(server.pid, signal.SIGSTOP)
            begun = time.monotonic()
            while time.monotonic() < begun + 0.5:
                if watcher.execute(KEEPS.encode()).fetchone() is not None:
                    return
            os.kill(server.pid, signal.SIGCONT)


async def play(one: Server, other: Server, database: str) -> float:
    """Stop one of two servers until the other continues; return the seconds that this took."""
    await pool_made(one.url)
    book, choice = Book(target=sys.maxsize), random.Random()
    urls = [one.url, other.url]
    async with asyncio.TaskGroup() as group:
        for n in range(CLIENTS):
            group.create_task(Client(n, urls[n % 2], book, choice).work())
        try:
            await stopped_with_locks(other, database, one.url, book)
            begun = time.monotonic()
            async with asyncio.timeout(SILENT_SECONDS_MAX):
                await granted(one.url, book, 20)
            seconds = time.monotonic() - begun
        finally:
            os.kill(other.pid, signal.SIGCONT)
        await granted(one.url, book, 20)
        book.enough.set()
    await everything_comes_back(other.url, book)
    assert audit(await history(one.url), book) >= LIMIT - 1
    for url in urls:
        async with Peer(url) as peer:
            assert await differences(peer) == []
    return seconds


@pytest.mark.skipif(not os.environ.get("MOORAGE_SOAK"), reason="takes half a minute")
def test_a_server_that_is_stopped_with_locks(capsys: pytest.CaptureFixture[str]) -> None:
    """The other server continues once the database has ended the transaction; nothing is lost."""
    database = cluster.fresh()
    with serve(database, *NOAUTH) as one, serve(database, *NOAUTH) as other:
        seconds = asyncio.run(play(one, other, database))
    with capsys.disabled():
        print(f"stopped with locks: others wait {seconds:.1f} s")  # noqa: T201 a measurement
