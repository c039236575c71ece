"""Pools, leases and tickets on either engine: the answers that callers get."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.admission.requests import Proof
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import (
    LeaseRelease,
    LeaseRenew,
    LeaseRetry,
    OnBehalf,
    TicketMove,
)
from moorage.service.admission.service import Admission
from tests.service.pools import (
    ask,
    opened,
    play,
    pool_delete,
    pool_pause,
    pool_put,
    refusal,
    spec,
    until_queued,
    wish,
)
from tests.service.running import TESTER
from tests.support import cluster


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgres" else f"sqlite:///{tmp_path}/m.sqlite"


def test_granted_at_once_and_the_next_waits(url: str) -> None:
    """The first gets the unit and a token; the next gets its position and why it waits."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "install/azure", spec())
        first = await ask(admission, "a", "install/azure")
        second = await ask(admission, "b", "install/azure")
        assert (first.lease.state, second.lease.state) == ("granted", "waiting")
        assert first.lease.token is not None
        assert first.times().expires_at is not None
        assert second.standing is not None
        assert second.standing.position == 1
        assert second.standing.reason
        pool = (await admission.queries.pool("install/azure")).pool
        assert (pool.occupied, pool.waiting) == (1, 1)

    play(url, scenario)


def test_the_same_key_is_the_same_lease(url: str) -> None:
    """A repeated request returns and renews its lease; a different one with its key is refused."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(5))
        first = await ask(admission, "k", "p")
        again = await ask(admission, "k", "p")
        assert (again.lease.id, again.lease.token) == (first.lease.id, first.lease.token)
        before, after = first.times().expires_at, again.times().expires_at
        assert after is not None
        assert before is not None
        assert after > before
        assert await refusal(ask(admission, "k", "p", units=2)) is Code.KEY_REUSED
        other = await ask(admission, "k", "p", owner="somebody else")
        assert other.lease.id != first.lease.id
        assert (await admission.queries.pool("p")).pool.occupied == 2

    play(url, scenario)


def test_a_release_wakes_the_next(url: str) -> None:
    """A waiting caller is answered as soon as the unit is free, with a higher token."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        first = await ask(admission, "a", "p")
        waiting = asyncio.create_task(admission.acquire(wish("b", "p"), TESTER, 30.0))
        await until_queued(admission, "p")
        released = await admission.change(LeaseRelease(first.lease.id, Proof("me")))
        assert (released.lease.state, released.lease.cause) == ("ended", "released")
        second = (await waiting).lease
        assert second.state == "granted"
        assert first.lease.token is not None
        assert second.token is not None
        assert second.token > first.lease.token

    play(url, scenario)


def test_lowered_and_made_first_at_the_same_moment(url: str) -> None:
    """Two moves in one batch: the later one holds, also for the ticket that was first."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        held = await ask(admission, "held", "p")
        first = (await ask(admission, "first", "p")).lease.id
        await ask(admission, "second", "p")
        await asyncio.gather(
            admission.change(TicketMove(first, -1, by=OnBehalf(TESTER))),
            admission.change(TicketMove(first, None, by=OnBehalf(TESTER))),
        )
        await admission.change(LeaseRelease(held.lease.id, Proof("me")))
        assert (await admission.queries.lease(first)).lease.state == "granted"

    play(url, scenario)


def test_two_gangs_on_two_units(url: str) -> None:
    """Two tickets that need both units get them one after the other, never one each."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2))
        one, other = await asyncio.gather(
            ask(admission, "a", "p", units=2), ask(admission, "b", "p", units=2)
        )
        assert sorted((one.lease.state, other.lease.state)) == ["granted", "waiting"]
        holder, waiter = (one, other) if one.lease.state == "granted" else (other, one)
        await admission.change(LeaseRelease(holder.lease.id, Proof("me")))
        assert (await admission.queries.lease(waiter.lease.id)).lease.state == "granted"

    play(url, scenario)


def test_gangs_over_pools_never_lock_each_other(url: str) -> None:
    """Tickets that need two pools each, in either order, are all granted in the end."""

    async def scenario(admission: Admission) -> None:
        for name in ("a", "b", "c"):
            await pool_put(admission, name, spec())
        pairs = [("a", "b"), ("b", "c"), ("a", "c")] * 4
        asked = [await ask(admission, str(n), *pair) for n, pair in enumerate(pairs)]
        for _ in pairs:
            states = [(await admission.queries.lease(one.lease.id)).lease for one in asked]
            granted = [lease for lease in states if lease.state == "granted"]
            if not granted:
                break
            for lease in granted:
                await admission.change(LeaseRelease(lease.id, Proof("me")))
        ended = [(await admission.queries.lease(one.lease.id)).lease.cause for one in asked]
        assert ended == ["released"] * len(pairs)

    play(url, scenario)


def test_many_at_once_never_go_over_the_limit(url: str) -> None:
    """Of a hundred simultaneous requests exactly as many are granted as there are units."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(7))
        views = await asyncio.gather(*(ask(admission, str(n), "p") for n in range(100)))
        granted = [view.lease for view in views if view.lease.state == "granted"]
        assert len(granted) == 7
        assert len({lease.token for lease in granted}) == 7
        assert (await admission.queries.pool("p")).pool.occupied == 7

    play(url, scenario)


def test_a_release_can_be_repeated(url: str) -> None:
    """A second release reports the same end; it does not free the unit of the next holder."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        first = await ask(admission, "a", "p")
        second = await ask(admission, "b", "p")
        for _ in range(2):
            view = await admission.change(LeaseRelease(first.lease.id, Proof("me")))
            assert view.lease.cause == "released"
        assert (await admission.queries.lease(second.lease.id)).lease.state == "granted"
        assert (await admission.queries.pool("p")).pool.occupied == 1

    play(url, scenario)


def test_only_its_holder_changes_a_lease(url: str) -> None:
    """Only its owner can end a lease, and an outdated token is refused."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease
        assert (
            await refusal(admission.change(LeaseRelease(lease.id, Proof("thief"))))
            is Code.HOLDER_MISMATCH
        )
        assert (
            await refusal(admission.change(LeaseRenew(lease.id, Proof("me", "1.1.9"))))
            is Code.TOKEN_STALE
        )
        assert (await admission.queries.lease(lease.id)).lease.state == "granted"
        held = await admission.queries.holder("p", str(lease.token))
        assert held is not None
        assert held.lease.id == lease.id
        await admission.change(LeaseRelease(lease.id, Proof("me")))
        assert await admission.queries.holder("p", str(lease.token)) is None
        assert (
            await refusal(admission.change(LeaseRenew(lease.id, Proof("me")))) is Code.LEASE_ENDED
        )

    play(url, scenario)


def test_what_can_never_be_granted_is_refused(url: str) -> None:
    """More units than the limit, an unknown pool, a full line: refused at once."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2, queue_max=1))
        assert await refusal(ask(admission, "a", "p", units=3)) is Code.UNITS_ABOVE_LIMIT
        assert await refusal(ask(admission, "a", "nowhere")) is Code.POOL_UNKNOWN
        assert await refusal(admission.queries.lease(LeaseId("nobody"))) is Code.LEASE_NOT_FOUND
        await ask(admission, "a", "p", units=2)
        await ask(admission, "b", "p")
        assert await refusal(ask(admission, "c", "p")) is Code.QUEUE_FULL

    play(url, scenario)


def test_a_lower_limit_revokes_no_lease(url: str) -> None:
    """A pool over its limit shows that and grants nothing until it is below the limit again."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(3))
        held = [(await ask(admission, str(n), "p")).lease for n in range(3)]
        big = (await ask(admission, "big", "p", units=3)).lease
        small = (await ask(admission, "small", "p")).lease
        await pool_put(admission, "p", spec(2))
        assert (await admission.queries.pool("p")).figures.free == -1
        await admission.change(LeaseRelease(held[0].id, Proof("me")))
        assert (await admission.queries.lease(small.id)).lease.state == "waiting"
        await admission.change(LeaseRelease(held[1].id, Proof("me")))
        assert (await admission.queries.lease(small.id)).lease.state == "granted"
        told = await admission.queries.lease(big.id)
        assert told.lease.state == "waiting"
        assert told.standing is not None
        assert told.standing.code == "above_limit"

    play(url, scenario)


def test_paused_pools_grant_nothing(url: str) -> None:
    """While a pool is paused everything except granting works; resuming grants."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2))
        first = await ask(admission, "a", "p")
        await pool_pause(admission, "p", True)
        second = await ask(admission, "b", "p")
        assert second.lease.state == "waiting"
        await admission.change(LeaseRenew(first.lease.id, Proof("me")))
        await pool_pause(admission, "p", False)
        assert (await admission.queries.lease(second.lease.id)).lease.state == "granted"

    play(url, scenario)


def test_a_retry_is_one_step(url: str) -> None:
    """The caller keeps its unit under a new key; to repeat the retry returns the same lease."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        first = (await ask(admission, "try-1", "p")).lease
        waiter = (await ask(admission, "other", "p")).lease
        second = (
            await admission.change(LeaseRetry(first.id, "me", Proof("me"), "try-2", TESTER))
        ).lease
        again = (
            await admission.change(LeaseRetry(first.id, "me", Proof("me"), "try-2", TESTER))
        ).lease
        asked = (await ask(admission, "try-2", "p")).lease
        assert second == again
        assert (asked.id, asked.token) == (second.id, second.token)
        assert (second.state, second.key) == ("granted", "try-2")
        assert (await admission.queries.lease(first.id)).lease.cause == "retried"
        assert (await admission.queries.lease(waiter.id)).lease.state == "waiting"

    play(url, scenario)


def test_operations_of_operators_are_audited(url: str) -> None:
    """Each creation, change and deletion of a pool, and each force and revocation, has a row."""

    async def run() -> None:
        async with opened(url) as service:
            admission = service.admission
            await pool_put(admission, "p", spec())
            await pool_put(admission, "p", spec(2), 1)
            await pool_put(admission, "p", spec(2))
            forced = (await ask(admission, "f", "p", units=2, forced=True)).lease
            assert await refusal(pool_delete(admission, "p")) is Code.POOL_IN_USE
            for _ in range(2):
                anew = (
                    await admission.change(LeaseRetry(forced.id, "me", Proof("me"), "f2", TESTER))
                ).lease
            await admission.change(LeaseRevoke(anew.id, "it is in the way", by=OnBehalf(TESTER)))
            await pool_delete(admission, "p")
            rows, _ = await service.audit.page(None, 100)
            assert [row.action for row in reversed(rows)] == [
                "pool.put",
                "pool.put",
                "lease.force",
                "lease.force",
                "lease.revoke",
                "pool.delete",
            ]

    asyncio.run(run())
