"""Pools with some units for each member of a group of reporters: their limits follow."""

import asyncio
from pathlib import Path
from typing import Any

from moorage.core.admission.model import PoolSpec
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.limits import MAX_INT
from moorage.service.admission.pool_cases import PoolPut
from moorage.service.admission.views import PoolView
from moorage.service.fleet.reporter_cases import Leave, Observe
from tests.service.fleet.alone import play as alone
from tests.service.fleet.pair import Pair, play, refused
from tests.service.fleet.reporters.reporting import GROUP, instance, join, silence
from tests.service.pools import ask
from tests.service.running import TESTER, Running

POOL = "deploy"
FOLLOW_SECONDS = 30.0


def spec(per_member: int | None = 2, **more: Any) -> PoolSpec:
    """Return a pool's settings: two units for each member, unless it says otherwise."""
    whole = {"limit": 0, "ttl": 60 * SECOND, "ttl_max": 600 * SECOND, "member_group": GROUP}
    return PoolSpec(**{**whole, "per_member": per_member, **more})


async def put(pair: Pair, wanted: PoolSpec) -> None:
    """Create or change the pool."""
    await pair.submit(PoolPut(POOL, TESTER, wanted, None))


async def view(pair: Pair, at: int = 1) -> PoolView:
    """Return the pool as a service shows it."""
    return await pair.services[at].admission.queries.pool(POOL)


async def state(pair: Pair, at: int, key: str) -> str:
    """Ask for a unit at a service; return the state of the lease or ticket."""
    return (await ask(pair.services[at].admission, key, POOL)).lease.state


async def units(pair: Pair) -> int:
    """Return the units of the pool, which both services see alike."""
    found = {(await view(pair, at)).figures.units for at in (0, 1)}
    assert len(found) == 1
    return found.pop()


def test_a_limit_follows_its_members(url: str) -> None:
    """Joins raise it, leaving lowers it, observed members count, each name once."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await join(one, "a")
        await put(pair, spec())
        assert await units(pair) == 2
        await join(other, "b")
        assert await units(pair) == 4
        await one.transactor.submit(Observe(GROUP, ["b", "c"], Instant(1), ""))
        assert await units(pair) == 6
        await other.transactor.submit(Leave(GROUP, "a", instance(1)))
        assert await units(pair) == 4
        await join(one, "x")
        await one.transactor.submit(Leave("other", "x", None))
        assert await units(pair) == 6
        before = (await view(pair)).pool.generation
        await put(pair, spec())
        assert (await view(pair)).pool.generation == before
        await put(pair, spec(5))
        assert await units(pair) == 15

    play(url, scenario)


def test_a_join_grants_at_once(url: str) -> None:
    """Tickets that wait are granted in the batch of the join; nothing is revoked later."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await put(pair, spec(1))
        assert [await state(pair, 0, f"t{n}") for n in range(3)] == ["waiting"] * 3
        await join(other, "a")
        await join(other, "b")
        leases, _, _ = await one.admission.queries.leases(None, 9, POOL, None)
        assert [each.lease.state for each in leases] == ["granted", "granted", "waiting"]
        await other.transactor.submit(Leave(GROUP, "a", None))
        shown = await view(pair, 0)
        assert (shown.figures.units, shown.pool.occupied, shown.figures.over) == (1, 2, True)
        assert await state(pair, 1, "late") == "waiting"

    play(url, scenario)


def test_a_silent_member_does_not_count(url: str) -> None:
    """Nothing is granted for it, and soon the pool shows a lower limit; it may return."""

    async def scenario(pair: Pair) -> None:
        one, other = pair.services
        await put(pair, spec(1))
        await join(one, "a")
        await join(one, "b")
        await silence(one, "b")
        assert await state(pair, 1, "first") == "granted"
        assert await state(pair, 1, "second") == "waiting"
        assert await units(pair) == 1
        await join(other, "b")
        assert await units(pair) == 2
        await silence(one, "b")
        await silence(one, "a")
        async with asyncio.timeout(FOLLOW_SECONDS):
            while await units(pair):
                await asyncio.gather(
                    *(each.admission.member_limits.look() for each in pair.services)
                )

    play(url, scenario)


def test_the_highest_limit_is_right(tmp_path: Path) -> None:
    """The loop has nothing to correct if the members have more units than a limit can be."""

    async def scenario(one: Running) -> None:
        loop = one.service.admission.member_limits
        await loop.stop()
        await join(one.service, "a")
        await join(one.service, "b")
        await one.submit(PoolPut(POOL, TESTER, spec(MAX_INT), None))
        shown = await one.service.admission.queries.pool(POOL)
        assert shown.figures.units == MAX_INT
        before = one.engine.transactions
        await loop.look()
        assert one.engine.transactions == before

    alone(tmp_path, scenario)


def test_settings_that_contradict_themselves(url: str) -> None:
    """Both members or none; a pool with slots has no other limit."""

    async def scenario(pair: Pair) -> None:
        with refused(Code.INVALID):
            await put(pair, spec(None, limit=3))
        with refused(Code.INVALID):
            await put(pair, spec(1, member_group=None))
        with refused(Code.INVALID):
            await put(pair, spec(-1))
        await put(pair, spec(None, member_group=None, limit=3))
        assert await units(pair) == 3
        await put(pair, spec(1))
        assert await units(pair) == 0
        await put(pair, spec(None, member_group=None, limit=3))
        await join(pair.services[0], "a")
        assert await units(pair) == 3

    play(url, scenario)
