"""A primary with a synchronous standby dies while clients acquire and release, and the standby
takes over: the limit holds, nothing acknowledged is lost or done twice, every unit comes back.
"""

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.ledger.test_failover import Pair
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
    token_of,
)
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import serve

pytestmark = pytest.mark.thorough

FAILOVERS = 5 if os.environ.get("MOORAGE_SOAK") else 1
CLIENTS = 24
GRANTS = 60


async def play(pair: Pair, urls: list[str], choice: random.Random) -> tuple[Book, list[float]]:
    """Fail over while clients work, then check all change rows."""
    await pool_made(urls[0])
    book, stalls = Book(target=sys.maxsize), []
    async with asyncio.TaskGroup() as group:
        for n in range(CLIENTS):
            group.create_task(Client(n, urls[n % 2], book, choice).work())
        for _ in range(FAILOVERS):
            await granted(urls[0], book, GRANTS)
            before = max(token_of(token) for _, token in book.granted.values())
            begun = time.monotonic()
            await asyncio.to_thread(pair.fail_over)
            await granted(urls[0], book, 1)
            stalls.append(time.monotonic() - begun)
        await granted(urls[0], book, GRANTS)
        book.enough.set()
    after = max(token_of(token) for _, token in book.granted.values())
    assert after[0] > before[0], "the epoch has not risen"
    for url in urls:
        async with Peer(url) as peer:
            assert await differences(peer) == []
    await everything_comes_back(urls[1], book)
    most = audit(await history(urls[0]), book)
    assert most >= LIMIT - 1, "the pool was never full: nothing was tested"
    return book, stalls


def test_failover_among_clients_of_a_pool(capsys: pytest.CaptureFixture[str]) -> None:
    """The service stalls, then continues with every acknowledged lease and release."""
    with TemporaryDirectory(prefix="moorage-pg-") as folder:
        Path(folder).chmod(0o755)
        pair = Pair(Path(folder))
        try:
            with serve(pair.address, *NOAUTH) as one, serve(pair.address, *NOAUTH) as other:
                choice = random.Random()
                book, stalls = asyncio.run(play(pair, [one.url, other.url], choice))
        finally:
            pair.close()
    with capsys.disabled():
        told = ", ".join(f"{stall:.1f} s" for stall in stalls)
        counts = f"{len(book.granted)} leases, {book.away} times away"
        print(f"failover of pools: stalls {told}; {counts}")  # noqa: T201 what a soak is for
