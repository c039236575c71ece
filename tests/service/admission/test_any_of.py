"""Tickets with alternatives on either engine: rows, restarts, peers, forecasts and retries.

Each service checks its database at its end, so sums and rows in all lines are right there.
"""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.model import Need
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRetry, TicketForce, TicketMove
from moorage.service.admission.service import Admission
from moorage.service.admission.views import LeaseView
from tests.service.pools import (
    ask,
    opened,
    pass_time,
    play,
    pool_delete,
    pool_pause,
    pool_put,
    refusal,
    spec,
    wish,
    with_manual_clock,
)
from tests.service.running import TESTER, Running
from tests.support import cluster

ME = Proof("me")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


def any_of(key: str, *alternatives: str, units: int = 1, **more: object) -> LeaseRequest:
    """A request for any of several alternatives, each of pools joined by +."""
    needs = [[Need(pool, units) for pool in one.split("+")] for one in alternatives]
    return wish(key, **more).any_of(needs)


async def full(admission: Admission, *pools: str) -> None:
    """Create pools of one unit, each held by a lease whose key is its name."""
    for pool in pools:
        await pool_put(admission, pool, spec())
        await ask(admission, pool, pool)


async def release(admission: Admission, key: str) -> None:
    """Release the lease with this key."""
    await admission.change(LeaseRelease((await found(admission, key)).lease.id, ME))


async def found(admission: Admission, key: str) -> LeaseView:
    """Return the lease with this key."""
    views, _, _ = await admission.queries.leases(None, 99, owner="me", key_prefix=key)
    (view,) = (one for one in views if one.lease.key == key)
    return view


async def needs(admission: Admission, key: str) -> set[str]:
    """Return the pools that a granted lease has; none of one that waits."""
    lease = (await found(admission, key)).lease
    return {need.pool for need in lease.needs} if lease.state == "granted" else set()


async def lines(admission: Admission, *pools: str) -> list[list[str]]:
    """Return the keys of the tickets in the lines of some pools."""
    pages = [await admission.queries.leases(None, 99, pool, "waiting") for pool in pools]
    return [[view.lease.key for view in views] for views, _, _ in pages]


def test_it_waits_in_all_lines_and_leaves_them_at_once(url: str) -> None:
    """Lists, counts and the rows of all pools agree."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b", "c")
        await admission.acquire(any_of("t", "a", "b", "c"), TESTER)
        await ask(admission, "later", "c")
        assert await lines(admission, "a", "b", "c") == [["t"], ["t"], ["t", "later"]]
        await release(admission, "b")
        assert await needs(admission, "t") == {"b"}
        assert await lines(admission, "a", "b", "c") == [[], [], ["later"]]
        await release(admission, "c")
        assert await needs(admission, "later") == {"c"}
        await pool_put(admission, "a", spec(3))
        assert await lines(admission, "a") == [[]]
        assert (await admission.queries.pool("a")).pool.occupied == 1

    play(url, scenario)


def test_the_same_key_gets_the_same_lease(url: str) -> None:
    """Also after a restart; another order of the alternatives is another request."""

    async def before() -> None:
        async with opened(url) as service:
            await full(service.admission, "a", "b")
            await service.admission.acquire(any_of("t", "a", "b"), TESTER)

    async def after() -> None:
        async with opened(url) as service:
            admission = service.admission
            ticket = (await found(admission, "t")).lease
            assert len(ticket.alternatives) == 2
            again = await admission.acquire(any_of("t", "a", "b"), TESTER)
            assert again.lease.id == ticket.id
            other = admission.acquire(any_of("t", "b", "a"), TESTER)
            assert await refusal(other) == Code.KEY_REUSED
            await release(admission, "b")
            again = await admission.acquire(any_of("t", "a", "b"), TESTER)
            assert (again.lease.id, again.lease.state) == (ticket.id, "granted")
            assert await needs(admission, "t") == {"b"}

    asyncio.run(before())
    asyncio.run(after())


def test_reasons_name_each_alternative(url: str) -> None:
    """The place and the time are those of the best; a paused one comes last."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b", "c")
        await pool_put(admission, "b", spec(hold=30 * SECOND))
        await ask(admission, "first", "a")
        await pool_pause(admission, "c", True, reason="new switch")
        view = await admission.acquire(any_of("t", "c", "a", "b"), TESTER)
        standing = view.standing
        assert standing is not None
        assert standing.position == 1
        each = [one.needs[0].pool for one in standing.alternatives]
        assert each == ["b", "a", "c"]
        codes = [one.standing.code for one in standing.alternatives]
        assert codes == ["limit", "ahead", "paused"]
        assert standing.reason.startswith("any of 3: b: first in line; limit: 1 of 1 unit of b")
        assert " | a: 1 ahead; limit" in standing.reason
        assert standing.reason.endswith(
            "c: paused: c grants nothing until it is resumed (new switch)"
        )
        later = await ask(admission, "later", "b")
        assert later.standing is not None
        assert later.standing.position == 2

    play(url, scenario)


def test_operators_move_and_force(url: str) -> None:
    """A move counts in each line, and the audit names what was asked for."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b")
        await ask(admission, "x", "b")
        await admission.acquire(any_of("t", "a", "b"), TESTER)
        ticket = (await found(admission, "t")).lease
        await admission.change(TicketMove(ticket.id, None))
        assert await lines(admission, "b") == [["x", "t"]]  # by arrival
        await release(admission, "b")
        assert await needs(admission, "t") == {"b"}
        await admission.acquire(any_of("u", "a", "b"), TESTER)
        await admission.change(TicketForce((await found(admission, "u")).lease.id))
        assert await needs(admission, "u") == {"a"}
        assert await lines(admission, "a", "b") == [[], ["x"]]

    play(url, scenario)


def test_a_retry_asks_for_all_again(url: str) -> None:
    """It keeps the units that it has; with `requeue` it waits in all lines."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b")
        await admission.acquire(any_of("t", "a", "b"), TESTER)
        await release(admission, "a")
        old = (await found(admission, "t")).lease
        await admission.change(LeaseRetry(old.id, "me", ME, "t2", TESTER))
        assert await needs(admission, "t2") == {"a"}
        await pool_pause(admission, "a", True)
        again = (await found(admission, "t2")).lease
        await admission.change(LeaseRetry(again.id, "me", ME, "t3", TESTER, requeue=True))
        assert await lines(admission, "a", "b") == [["t3"], ["t3"]]
        await release(admission, "b")
        assert await needs(admission, "t3") == {"b"}

    play(url, scenario)


def test_pools_of_other_alternatives_may_go(url: str) -> None:
    """While it waits, no pool in whose line it is can be deleted."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b")
        await admission.acquire(any_of("t", "a", "b"), TESTER)
        await release(admission, "a")
        await release(admission, "b")
        await pool_delete(admission, "b")
        lease = (await found(admission, "t")).lease
        await admission.change(LeaseRetry(lease.id, "me", ME, "t2", TESTER))
        assert await needs(admission, "t2") == {"a"}
        await release(admission, "t2")

    play(url, scenario)


def test_an_unconfirmed_grant_waits_in_all_lines_again(tmp_path: Path) -> None:
    """Its client did not come: others are granted, and it is at its place when it returns."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await full(admission, "a", "b")
        await admission.acquire(any_of("t", "a", "b", attended=True), TESTER)
        await release(admission, "a")
        await admission.acquire(any_of("t", "a", "b", attended=True), TESTER)
        assert await needs(admission, "t") == {"a"}
        await pass_time(one, 16 * SECOND)
        assert await lines(admission, "a", "b") == [["t"], ["t"]]
        await ask(admission, "other", "a")
        assert await needs(admission, "other") == {"a"}

    with_manual_clock(tmp_path, scenario)


def test_two_processes_grant_once() -> None:
    """Each releases a unit of one pool at the same time: the ticket gets one of them."""
    url = cluster.fresh()

    async def run() -> None:
        async with opened(url) as one, opened(url) as two:
            for n in range(5):
                pools = [f"a{n}", f"b{n}"]
                await full(one.admission, *pools)
                await two.admission.acquire(any_of(f"t{n}", *pools), TESTER)
                await asyncio.gather(
                    release(one.admission, pools[0]), release(two.admission, pools[1])
                )
                held = [(await one.admission.queries.pool(name)).pool.occupied for name in pools]
                assert sorted(held) == [0, 1]
                assert await lines(one.admission, *pools) == [[], []]

    asyncio.run(run())


def test_a_gang_of_alternatives(url: str) -> None:
    """Common needs are granted with the alternative, or nothing is."""

    async def scenario(admission: Admission) -> None:
        await full(admission, "a", "b", "dns")
        needs_dns = wish("t", "dns").any_of([[Need("a", 1)], [Need("b", 1)]])
        await admission.acquire(needs_dns, TESTER)
        await release(admission, "a")
        assert await needs(admission, "t") == set()
        await ask(admission, "later", "a")
        assert await needs(admission, "later") == set(), "it is set aside"
        await release(admission, "dns")
        assert await needs(admission, "t") == {"a", "dns"}

    play(url, scenario)


def test_many_tickets_share_many_pools(url: str) -> None:
    """Pages of lines are merged: forty tickets with three alternatives each, in order."""

    async def scenario(admission: Admission) -> None:
        pools = [f"p{n}" for n in range(5)]
        await full(admission, *pools)
        names = []
        for n in range(40):
            names.append(f"t{n:02}")
            chosen = [pools[(n + m) % 5] for m in (0, 1, 3)]
            await admission.acquire(any_of(names[-1], *chosen), TESTER)
        for pool in pools:
            await pool_put(admission, pool, spec(5))
        granted = [name for name in names if await needs(admission, name)]
        assert granted == names[:20]

    play(url, scenario)
