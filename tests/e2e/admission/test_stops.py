"""A server is stopped for longer than any holder may be silent, then continues.

A closed lid, a debugger or a migrated machine does to a process what SIGSTOP does. No client can
renew meanwhile, so it counts as an outage.
"""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from moorage.core.admission.model import RENEWALS
from moorage.core.clock import SECOND
from moorage.core.service_time import OUTAGE
from moorage.service.clock import SystemClock
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
from tests.e2e.support.peer import Answer, Peer, differences
from tests.e2e.support.server import Server, serve

TTL = 6.0
INTERVAL = TTL / RENEWALS
STOPPED = OUTAGE / SECOND + 1.5
LIMIT = 6


def lasting(key: str) -> dict[str, Any]:
    """Ask for a unit, with a TTL shorter than the stop."""
    return wish(key, ttl=TTL, patience=TTL)


async def renewed(url: str, lease: Any) -> Answer:
    """Keep a lease for a while."""
    path = f"/v1/leases/{lease['id']}/renew"
    return await called(url, "POST", path, {"token": lease["token"]})


async def holding(url: str, lease: Any, enough: asyncio.Event) -> None:
    """Renew as holders do, as often as the TTL requires; every renewal must succeed."""
    while not enough.is_set():
        answer = await renewed(url, lease)
        assert answer.status == 200, answer
        await asyncio.wait([asyncio.ensure_future(enough.wait())], timeout=INTERVAL)


async def stopped(server: Server, waiters: list[asyncio.Task[Any]]) -> float:
    """Stop the server for longer than an outage; return the monotonic time of its going on."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        done, _ = await asyncio.wait(waiters, timeout=STOPPED, return_when=asyncio.FIRST_COMPLETED)
        assert not done, "somebody was answered by a server that is stopped"
    finally:
        os.kill(server.pid, signal.SIGCONT)
    return time.monotonic()


async def play(server: Server) -> None:
    """Two renew all the time, two only after the stop, two never again; three wait in line."""
    url, book = server.url, Book()
    await pool_made(url, limit=LIMIT)
    leases = [await asked(url, lasting(f"h{n}")) for n in range(LIMIT)]
    for n, lease in enumerate(leases):
        book.granted[f"h{n}"] = (lease["id"], lease["token"])
    waiters = [asyncio.create_task(asked(url, lasting(f"w{n}"), 50)) for n in range(3)]
    enough = asyncio.Event()
    async with asyncio.TaskGroup() as group, Peer(url) as peer:
        while (await peer.call("GET", "/v1/pools/ci/install")).json()["waiting"] < 3:
            pass
        for lease in leases[:2]:
            group.create_task(holding(url, lease, enough))
        went_on = await stopped(server, waiters)
        resumed = datetime.fromtimestamp(SystemClock().now() / SECOND, UTC)
        # Holders that were silent meanwhile renew within one interval, not all at once.
        await asyncio.wait(waiters, timeout=INTERVAL / 2, return_when=asyncio.FIRST_COMPLETED)
        for lease in leases[2:4]:
            answer = await renewed(url, lease)
            assert answer.status == 200, answer
            assert time.monotonic() - went_on < INTERVAL, "this machine is too slow for the test"
            group.create_task(holding(url, lease, enough))
        await asyncio.wait(waiters[:2], timeout=3 * TTL)
        for lease in leases[4:]:
            told = (await called(url, "GET", f"/v1/leases/{lease['id']}")).json()
            assert (told["state"], told["cause"]) == ("ended", "ttl_over")
            ended = datetime.fromisoformat(told["ended_at"])
            assert ended - resumed >= timedelta(seconds=INTERVAL) - timedelta(milliseconds=50)
        for n, waiter in enumerate(waiters[:2]):
            lease = waiter.result()
            assert lease["state"] == "granted"
            book.granted[f"w{n}"] = (lease["id"], lease["token"])
        assert not waiters[2].done(), "a lease has ended whose holder was heard of"
        enough.set()
    for lease in [*leases[:4], *(waiter.result() for waiter in waiters[:2])]:
        path = f"/v1/leases/{lease['id']}?token={lease['token']}"
        assert (await called(url, "DELETE", path)).json()["cause"] == "released"
    last = await waiters[2]
    book.granted["w2"] = (last["id"], last["token"])
    await called(url, "DELETE", f"/v1/leases/{last['id']}?token={last['token']}")
    await everything_comes_back(url, book, LIMIT)
    assert audit(await history(url), book, LIMIT) == LIMIT
    async with Peer(url) as peer:
        assert await differences(peer) == []


def test_a_server_that_is_stopped_for_long(tmp_path: Path) -> None:
    """Holders that renew keep their leases, none ends too early, and the limit holds."""
    with serve(tmp_path / "m.sqlite", *NOAUTH) as server:
        asyncio.run(play(server))
