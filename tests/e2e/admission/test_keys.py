"""The same request at two servers at the same time gives one lease, and both return it."""

import asyncio
from typing import Any

from tests.e2e.support.leasing import (
    NOAUTH,
    Book,
    asked,
    audit,
    called,
    everything_comes_back,
    history,
    pool_made,
    wish,
)
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import serve
from tests.support import cluster

PAIRS = 50


def lasting(key: str, units: int = 1) -> dict[str, Any]:
    """Ask for units; nothing ends by itself."""
    return wish(key, units, ttl=600.0, patience=600.0)


async def both(urls: list[str], key: str) -> tuple[Any, Any]:
    """Request a lease at both servers at once; return both answers."""
    one, other = await asyncio.gather(*(asked(url, lasting(key)) for url in urls))
    return one, other


async def released(url: str, lease: Any) -> None:
    """Give a lease back."""
    answer = await called(url, "DELETE", f"/v1/leases/{lease['id']}?token={lease['token']}")
    assert answer.status == 200, answer


async def play(urls: list[str]) -> None:
    """Ask twice for everything: one after the other, all at once, and while the pool is full."""
    await pool_made(urls[0], limit=PAIRS)
    book = Book()
    alone = [await both(urls, f"alone-{n}") for n in range(PAIRS)]
    crowd = await asyncio.gather(*(both(urls, f"crowd-{n}") for n in range(PAIRS)))
    for n, (one, other) in enumerate(alone):
        assert (one["id"], one["token"]) == (other["id"], other["token"])
        assert one["state"] == "granted"
        book.granted[f"alone-{n}"] = (one["id"], one["token"])
    for one, other in crowd:
        assert one["id"] == other["id"]
        assert one["state"] == other["state"] == "waiting"
    pool = (await called(urls[1], "GET", "/v1/pools/ci/install")).json()
    assert (pool["occupied"], pool["waiting"]) == (PAIRS, PAIRS)
    for one, _ in alone:
        await released(urls[0], one)
    for n, (one, _) in enumerate(crowd):
        lease, again = await both(urls, f"crowd-{n}")
        assert (lease["id"], lease["token"]) == (again["id"], again["token"])
        assert (lease["id"], lease["state"]) == (one["id"], "granted")
        book.granted[f"crowd-{n}"] = (lease["id"], lease["token"])
        await released(urls[1], lease)
    await everything_comes_back(urls[0], book, limit=PAIRS)
    assert audit(await history(urls[1]), book, limit=PAIRS) == PAIRS
    for url in urls:
        async with Peer(url) as peer:
            assert await differences(peer) == []


def test_the_same_key_at_two_servers_at_once() -> None:
    """Always one lease, granted or waiting, and both answers name it."""
    database = cluster.fresh()
    with serve(database, *NOAUTH) as one, serve(database, *NOAUTH) as other:
        asyncio.run(play([one.url, other.url]))
