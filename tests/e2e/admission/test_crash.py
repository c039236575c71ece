"""Kills servers while clients request, hold and release leases, and disappear.

Invariants: the change rows never exceed the limit, tokens only rise, nothing acknowledged is lost,
a repeated request has one lease, and at the end every unit is free again. `MOORAGE_SEED` repeats a
run's choices; what a kill interrupts depends on the machine.
"""

import asyncio
import random
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.chance import seeded
from tests.e2e.support.leasing import (
    LIMIT,
    NOAUTH,
    POOLS,
    Book,
    Chooser,
    Client,
    audit,
    everything_comes_back,
    history,
    pool_made,
)
from tests.e2e.support.peer import NoAnswer, Peer, differences
from tests.e2e.support.server import Server, serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

KILLS = 4
CLIENTS = 24
GRANTS_PER_ROUND = 50


async def until_killed(client: Client) -> None:
    """Work until it is enough or the server is gone."""
    with suppress(NoAnswer, ConnectionError):
        await client.work()


async def one_round(
    servers: list[Server],
    book: Book,
    choice: random.Random,
    victim: Server,
    kind: type[Client] = Client,
) -> None:
    """Let clients work, then kill a server in the middle."""
    book.target = len(book.granted) + GRANTS_PER_ROUND
    book.enough.clear()
    urls = [server.url for server in servers]
    clients = [
        asyncio.create_task(until_killed(kind(n, urls[n % len(urls)], book, choice)))
        for n in range(CLIENTS)
    ]
    await book.enough.wait()
    victim.stop(signal.SIGKILL)
    # The clients of the others finish what they are at.
    await asyncio.gather(*clients)


async def play(database: str, count: int, choice: random.Random) -> None:
    """Kill one server after the other, then check all change rows."""
    book = Book()
    with ExitStack() as stack:
        running = [stack.enter_context(serve(database, *NOAUTH)) for _ in range(count)]
        await pool_made(running[0].url)
        for n in range(KILLS):
            victim = n % count
            await one_round(running, book, choice, running[victim])
            running[victim] = stack.enter_context(serve(database, *NOAUTH))
        url = running[0].url
        await everything_comes_back(url, book)
        most = audit(await history(url), book)
        async with Peer(url) as peer:
            assert await differences(peer) == []
    assert book.away == 0
    assert most >= LIMIT - 1, "the pool was never full: nothing was tested"


@pytest.mark.parametrize("servers", [1, 2])
def test_killed_servers_keep_the_limit(servers: int, tmp_path: Path) -> None:
    """One server on SQLite, or two on PostgreSQL, killed again and again among their clients."""
    database = cluster.fresh() if servers > 1 else f"sqlite:///{tmp_path}/m.sqlite"
    with seeded() as seed:
        asyncio.run(play(database, servers, random.Random(seed)))


async def play_any_of(database: str, count: int, choice: random.Random) -> None:
    """Do the same with clients that take a unit of any of several pools."""
    book = Book()
    with ExitStack() as stack:
        running = [stack.enter_context(serve(database, *NOAUTH)) for _ in range(count)]
        async with Peer(running[0].url) as peer:
            for pool in POOLS:
                made = await peer.call("PUT", f"/v1/pools/{pool}", {"limit": 2, "pacing": None})
                assert made.status == 200, made
        for n in range(KILLS):
            victim = n % count
            await one_round(running, book, choice, running[victim], Chooser)
            running[victim] = stack.enter_context(serve(database, *NOAUTH))
        url = running[0].url
        all_of_it = {"needs": [{"pool": pool, "units": 2} for pool in POOLS], "key": "all of it"}
        async with Peer(url) as peer:
            answer = await peer.call("POST", "/v1/leases?wait=50", all_of_it)
            assert answer.status == 201, answer
            assert await differences(peer) == []
        revisions = await history(url)
    most = audit(revisions, book, 2 * len(POOLS))
    assert most == 2 * len(POOLS), "the pools were never full: nothing was tested"
    each_is_one_alternative(revisions)


def each_is_one_alternative(revisions: list[list[dict[str, Any]]]) -> None:
    """No pool exceeds its limit, and no lease has more than one of its alternatives."""
    held: dict[str, list[dict[str, Any]]] = {}
    for leases in revisions:
        for lease in leases:
            held.pop(lease["id"], None)
            if lease["state"] == "granted":
                held[lease["id"]] = lease["needs"]
                options = lease["alternatives"] or [lease["needs"]]
                assert lease["needs"] in options, f"no alternative, or several: {lease}"
        for pool in POOLS:
            units = sum(n["units"] for needs in held.values() for n in needs if n["pool"] == pool)
            assert units <= 2, f"{units} units of {pool} were held at once"


@pytest.mark.parametrize("servers", [1, 2])
def test_killed_servers_grant_one_alternative(servers: int, tmp_path: Path) -> None:
    """Nobody gets two of several pools, no line keeps a ticket that was granted elsewhere."""
    database = cluster.fresh() if servers > 1 else f"sqlite:///{tmp_path}/m.sqlite"
    with seeded() as seed:
        asyncio.run(play_any_of(database, servers, random.Random(seed)))
