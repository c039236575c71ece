"""What is special about one host disturbs no other one, and holds the host itself no longer."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from moorage.integrations.clock import monotonic
from moorage.integrations.metal3 import governor as governing
from moorage.integrations.metal3.failures import WAIT_MAX
from moorage.integrations.metal3.hosts import uid_of
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.rules import Condition, Rule
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, World, play
from tests.integrations.metal3.govern.test_reconcile import failing_name
from tests.support.bmo_double.hosts import PAUSED, annotations, state
from tests.support.kubernetes_client import host

FEW = 10
"""Tickets that two governors may withdraw of each other in the time of a test."""

EXEMPT = Rules(rules=(Rule(pool=POOL),), exempt=(Condition(patterns={"labels.urgent": ("true",)}),))
PROVISIONING = Rules(rules=(Rule(pool=POOL, verbs=frozenset({"provision"})),))


def blocked(world: World, units: int = 1) -> str:
    """Take all units of the pool; return the id of the lease."""
    wanted = LeaseWanted(needs=[NeedWanted(pool=POOL, units=units)], key="blocker", ttl=3_600.0)
    return world.operator.ask(wanted).id


def test_a_host_that_becomes_exempt_waits_no_longer(tmp_path: Path) -> None:
    """It has a request that waits for a unit, of which there is none; then it starts at once."""

    async def scene(world: World) -> None:
        blocked(world)
        async with world.governor(EXEMPT) as governor:
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await world.until(lambda: bool([*world.operator.leases(POOL, "waiting")]), governor)
            await world.api.merge(f"{ALL}/a", {"metadata": {"labels": {"urgent": "true"}}})
            async with asyncio.timeout(10.0):
                await world.until(lambda: world.reached(["a"], "provisioned"), governor)

    play(tmp_path, scene, limit=1, failing=0.0)


def test_a_host_that_works_and_needs_nothing_is_let_go(tmp_path: Path) -> None:
    """Our pause came by hand while it was inspected, for which no rule wants a unit."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a"))
        await world.until(lambda: state(world.host("a")) == "inspecting")
        await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": OWN}})
        async with world.governor(PROVISIONING) as governor, asyncio.timeout(10.0):
            await world.until(lambda: world.reached(["a"], "available"), governor)

    play(tmp_path, scene, failing=0.0)


def test_governors_with_different_rules_do_not_race(tmp_path: Path) -> None:
    """As in a rolling update: each withdraws the ticket of the other one, but not at once again."""
    both = Rules(rules=(Rule(pool=POOL), Rule(pool=f"{POOL}/rack")))

    async def scene(world: World) -> None:
        world.operator.pool_put(f"{POOL}/rack", PoolWanted(limit=1, expire="keep"))
        blocker = blocked(world)
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        async with world.governor() as old, world.governor(both) as new:
            for _ in range(20):
                await asyncio.gather(old.tick(), new.tick())
                await world.double.storage.changed(0.1)
            ended = [*world.operator.leases(POOL, "ended")]
            assert 0 < len(ended) < FEW
            world.operator.release(blocker)
            await world.until(lambda: world.reached(["a"], "provisioned"), old, new)

    play(tmp_path, scene, limit=1, failing=0.0)


def test_a_host_has_its_units_once(tmp_path: Path) -> None:
    """People start a host by hand while it waits, and it is counted. Then its ticket is granted to
    a governor that has not looked since: that one gives the unit back.
    """

    async def scene(world: World) -> None:
        blocker = blocked(world, 2)
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        async with world.governor() as late, world.governor() as other:
            await world.until(lambda: bool([*world.operator.leases(POOL, "waiting")]), late)
            await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
            reconciler = other._reconciler  # it counts, and withdraws nothing
            while not (await reconciler.run_once()).leases:
                await world.double.storage.changed(0.1)
            world.operator.release(blocker)
            while [*world.operator.leases(POOL, "waiting")]:
                await world.double.storage.changed(0.1)
            while world.held() > 1:
                await world.double.storage.changed(0.1)
            (lease,) = world.operator.leases(POOL, "granted")
            assert lease.key.endswith("/adopted")

    play(tmp_path, scene, limit=2, failing=0.0)


def test_a_clock_that_is_ahead_lets_no_host_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that could not start waits until a time of the operator's clock, which is far ahead of
    ours: after an hour by our own clock it asks again.
    """

    async def scene(world: World) -> None:
        bad = failing_name(world, fails=True)
        early = datetime(2000, 1, 1, tzinfo=UTC)
        async with world.governor(now=lambda: early, stuck_seconds=0.0) as governor:
            await world.api.create(ALL, host(bad, image=IMAGE, annotations=OWN))
            uid = uid_of(world.host(bad))
            await world.until(lambda: "again from" in governor.remarks.get(uid, ""), governor)
            began = world.nodes.book.times(f"metal3~{bad}", "deploying")
            assert await governor.tick()
            hour = monotonic() + WAIT_MAX.total_seconds()
            monkeypatch.setattr(governing, "monotonic", lambda: hour)
            await world.api.merge(f"{ALL}/{bad}", {"metadata": {"labels": {"seen": "1"}}})
            await world.until(lambda: PAUSED not in annotations(world.host(bad)), governor)
            assert began == 1

    play(tmp_path, scene, retries=1)


def test_a_label_that_names_no_pool_stops_no_other_host(tmp_path: Path) -> None:
    """People start a host by hand whose label names a pool that there is not: it is counted in the
    pool of all hosts, in which others start; nothing starts in a pool of that name while it works.
    """
    racks = Rules(rules=(Rule(pool=POOL), Rule(pool=f"{POOL}/{{labels.rack}}")))

    async def scene(world: World) -> None:
        world.nodes.seconds["deploying"] = 1e6
        world.operator.pool_put(f"{POOL}/a", PoolWanted(limit=5, expire="keep"))
        await world.api.create(ALL, host("odd", image=IMAGE, labels={"rack": "nowhere"}))
        await world.until(lambda: world.reached(["odd"], "provisioning"))
        async with world.governor(racks) as governor:
            await world.api.create(
                ALL, host("good", image=IMAGE, annotations=OWN, labels={"rack": "a"})
            )
            await world.until(lambda: world.reached(["good"], "provisioning"), governor)
            assert world.held() == 2
            assert governor.picture.failed == 1
            world.operator.pool_put(f"{POOL}/nowhere", PoolWanted(limit=1, expire="keep"))
            await world.api.create(
                ALL, host("late", image=IMAGE, annotations=OWN, labels={"rack": "nowhere"})
            )
            for _ in range(3):
                assert await governor.tick()
            late = uid_of(world.host("late"))
            assert "cannot be counted" in governor.remarks[late]

    play(tmp_path, scene, failing=0.0)
