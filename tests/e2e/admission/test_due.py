"""Thousands of leases that are over at the same moment: ended in turns, while others are served.

The leases are granted by a clock of long ago, so that all of their holds are over when the server
starts: as if it had been away for longer than any of them lasts.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.model import PoolSpec
from moorage.core.admission.requests import LeaseRequest
from moorage.core.clock import SECOND
from moorage.service.batch.ledger_share import LeaseAllocations
from tests.e2e.support.leasing import NOAUTH
from tests.e2e.support.load import wish as claim
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import Server, serve
from tests.service.pools import MINUTE, pool_put, wish
from tests.service.running import TESTER, consumer_id, provider_id, running

pytestmark = pytest.mark.thorough

LEASES = 10_000
TICKETS = LEASES // 10
"""Tickets in the line of the same pool, granted by those ends."""

SECONDS_MAX = 1.5
"""For one answer meanwhile, on a machine that does other things, too."""

ENDS = {"hold_over": {"hold": 20 * SECOND}, "ttl_over": {"ttl": 4 * SECOND}}
"""By what the leases end, and the pool that does it."""

PROVIDER = provider_id(1)


def wished(n: int, in_ledger: bool) -> LeaseRequest:
    """Ask for a unit, and for capacity as well."""
    if not in_ledger:
        return wish(str(n), "p", patience=60 * MINUTE)
    held = LeaseAllocations(consumer_id(n), {PROVIDER: {"VCPU": 1}}, "project", "user", "INSTANCE")
    return wish(str(n), "p", patience=60 * MINUTE, allocations=held)


async def prepared(path: Path, spec: dict[str, Any], in_ledger: bool) -> None:
    """Grant leases that have ended by now or end soon, with tickets that wait for them."""
    async with running(path, queue_max=2 * LEASES) as one:
        admission = one.service.admission
        await one.provider(1, VCPU=1_000_000)
        free = PoolSpec(limit=1_000_000, ttl=MINUTE, ttl_max=60 * MINUTE)
        await pool_put(admission, "other", free)
        full = structs.replace(free, limit=LEASES, **spec)
        await pool_put(admission, "p", full)
        wishes = [wished(n, in_ledger) for n in range(LEASES + TICKETS)]
        views = await asyncio.gather(*(admission.acquire(one, TESTER) for one in wishes))
        assert sum(view.lease.state == "granted" for view in views) == LEASES


class Clock:
    """Measures how long answers take, until there has been enough of it."""

    def __init__(self) -> None:
        self.enough = asyncio.Event()
        self.seconds: dict[str, list[float]] = {}

    async def measure(self, what: str, call: Callable[[int], Awaitable[Any]]) -> None:
        """Call again and again."""
        taken = self.seconds.setdefault(what, [])
        while not self.enough.is_set():
            begun = time.monotonic()
            await call(len(taken))
            taken.append(time.monotonic() - begun)

    def worst(self, what: str, share: float) -> float:
        """Return how long answers took at most, but for a share of them."""
        taken = sorted(self.seconds[what])
        return taken[min(len(taken) - 1, int(len(taken) * share))]


async def claimed(claims: Peer, n: int) -> None:
    """Claim in the ledger."""
    path = f"/allocations/{n:08d}-dddd-4ddd-8ddd-dddddddddddd"
    answer = await claims.call("PUT", path, claim({PROVIDER: 1}))
    assert answer.status == 204, answer


async def acquired(asks: Peer, n: int) -> None:
    """Acquire in another pool."""
    body = {"needs": [{"pool": "other", "units": 1}], "key": str(n)}
    answer = await asks.call("POST", "/v1/leases", body)
    assert answer.status == 201, answer


async def play(server: Server, cause: str) -> str:
    """Claim and acquire until everything is over; return what was measured."""
    clock, seen = Clock(), [LEASES]
    async with Peer(server.url) as peer, Peer(server.url) as claims, Peer(server.url) as asks:
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(clock.measure("claim", partial(claimed, claims)))
            group.create_task(clock.measure("acquire", partial(acquired, asks)))
            while seen[-1] > TICKETS:
                pool = (await peer.call("GET", "/v1/pools/p")).json()
                seen.append(pool["occupied"])
            seconds = time.monotonic() - begun
            clock.enough.set()
        assert seen[1] > LEASES // 2, "it was over before anybody could ask"
        assert seen == sorted(seen, reverse=True)
        assert (seen[-1], pool["waiting"]) == (TICKETS, 0)
        assert (await peer.call("GET", "/v1/pools/p:report")).json()["causes"] == {cause: LEASES}
        assert await differences(peer) == []
    for what in clock.seconds:
        assert clock.worst(what, 1.0) < SECONDS_MAX, clock.seconds[what]
    return f"{seen[1]} leases ended in {seconds:.1f} s; " + ", ".join(
        f"{what} x{len(taken)} p50 {clock.worst(what, 0.5) * 1e3:.0f} ms"
        f" p99 {clock.worst(what, 0.99) * 1e3:.0f} ms max {max(taken) * 1e3:.0f} ms"
        for what, taken in clock.seconds.items()
    )


@pytest.mark.parametrize(
    ("cause", "in_ledger"), [("hold_over", False), ("ttl_over", False), ("hold_over", True)]
)
def test_thousands_are_over_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cause: str, in_ledger: bool
) -> None:
    """All of them end, their waiters are granted, and other requests do not wait long."""
    path = tmp_path / "m.sqlite"
    asyncio.run(prepared(path, ENDS[cause], in_ledger))
    with serve(path, *NOAUTH, "--no-access-log") as server:
        told = asyncio.run(play(server, cause))
    with capsys.disabled():
        print(f"{cause}{' in the ledger, too' * in_ledger}: {told}")  # noqa: T201 a measurement
