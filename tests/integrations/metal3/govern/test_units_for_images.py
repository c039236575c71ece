"""Hosts that work, keep their units, and need more of them for an image."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.hosts import uid_of
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning import deadlock
from moorage.integrations.provisioning.rules import Condition, Rule
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, SOON, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host

IMAGES = f"{POOL}/images"
LARGE = "http://images/large"
PROVISION = frozenset({"provision"})

DOUBLE = Rules(rules=(Rule(pool=POOL), Rule(pool=POOL, verbs=PROVISION)))
"""An image needs one more unit of the same pool."""

LARGE_ONES = Rules(
    rules=(
        Rule(pool=POOL),
        Rule(pool=IMAGES, verbs=PROVISION, where=Condition(patterns={"image": ("*large*",)})),
    )
)


def crossed(name: str, first: str, then: str) -> tuple[Rule, Rule]:
    """Return rules by which a host is inspected with one pool, and gets its image with another."""
    where = Condition(patterns={"name": (name,)})
    inspect = frozenset({"inspect", "prepare"})
    return (
        Rule(pool=first, verbs=inspect, where=where),
        Rule(pool=then, verbs=PROVISION, where=where),
    )


CROSSED = Rules(rules=(*crossed("a", POOL, IMAGES), *crossed("b", IMAGES, POOL)))


async def image(world: World, name: str, url: str = IMAGE, **more: str) -> None:
    """Give a host an image, with annotations."""
    await world.api.merge(
        f"{ALL}/{name}", {"metadata": {"annotations": more}, "spec": {"image": {"url": url}}}
    )


async def inspected(world: World, governor: Governor, *names: str) -> None:
    """Return when hosts are inspected, which takes some seconds."""
    world.nodes.seconds["inspecting"] = 400.0
    for name in names:
        await world.api.create(ALL, host(name, annotations=OWN))
    await world.until(lambda: world.reached([*names], "inspecting"), governor)


@pytest.mark.parametrize(("rules", "limit"), [(DOUBLE, 2), (CROSSED, 1)])
def test_hosts_that_wait_for_each_other(tmp_path: Path, rules: Rules, limit: int) -> None:
    """All units are kept by hosts that wait for one more: one goes over the limit, then the other
    has its turn. None does so while the hosts may still get what they need.
    """

    async def scene(world: World) -> None:
        world.operator.pool_put(IMAGES, PoolWanted(limit=1, expire="keep"))
        async with world.governor(rules) as governor:
            await inspected(world, governor, "a", "b")
            for name in "ab":
                await image(world, name, **OWN)
            async with asyncio.timeout(SOON):
                await world.until(lambda: world.reached(["a", "b"], "provisioned"), governor)
        pools = (POOL, IMAGES)
        forced = [one for pool in pools for one in world.operator.leases(pool, "ended")]
        assert sum(one.forced for one in {one.id: one for one in forced}.values()) == 1

    play(tmp_path, scene, limit=limit, failing=0.0)


def test_the_control_without_it_they_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same hosts, if nothing is found to wait for each other: both still wait."""
    monkeypatch.setattr(deadlock, "deadlocked", lambda *_: [])

    async def scene(world: World) -> None:
        async with world.governor(DOUBLE) as governor:
            await inspected(world, governor, "a", "b")
            for name in "ab":
                await image(world, name, **OWN)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(deadlock.STANDSTILL_SECONDS + 5.0):
                    await world.until(lambda: world.reached(["a"], "provisioning"), governor)
            assert len([*world.operator.leases(POOL, "waiting")]) == 2

    play(tmp_path, scene, limit=2, failing=0.0)


def test_a_paused_pool_is_no_deadlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People have paused the pool that two hosts wait for: nobody goes over its limit."""
    monkeypatch.setattr(deadlock, "STANDSTILL_SECONDS", 0.0)

    async def scene(world: World) -> None:
        async with world.governor(DOUBLE) as governor:
            await inspected(world, governor, "a", "b")
            world.operator.pool_pause(POOL)
            for name in "ab":
                await image(world, name, **OWN)
            await world.until(lambda: len([*world.operator.leases(POOL, "waiting")]) == 2, governor)
            for _ in range(5):
                assert await governor.tick()
            assert world.held() == 2

    play(tmp_path, scene, limit=2, failing=0.0)


def test_a_host_without_units_has_no_precedence(tmp_path: Path) -> None:
    """A host that is inspected without a limit, and then waits for an image, keeps nothing that
    others need: it waits behind those that came before it.
    """
    rules = Rules(rules=(Rule(pool=POOL, verbs=PROVISION),))

    async def scene(world: World) -> None:
        needs = [NeedWanted(pool=POOL, units=1)]
        assert world.operator.ask(LeaseWanted(needs=needs, key="other")).state == "granted"
        async with world.governor(rules) as governor:
            await world.api.create(ALL, host("first"))
            await world.until(lambda: world.reached(["first"], "available"), governor)
            await inspected(world, governor, "working")
            await image(world, "first", **OWN)
            await world.until(lambda: bool([*world.operator.leases(POOL, "waiting")]), governor)
            await image(world, "working", **OWN)
            await world.until(lambda: len([*world.operator.leases(POOL, "waiting")]) == 2, governor)
            line = {
                one.labels["holder"]: one.waiting and one.waiting.position
                for one in world.operator.leases(POOL, "waiting")
            }
            assert line == {"metal3/first": 1, "metal3/working": 2}

    play(tmp_path, scene, limit=1, failing=0.0)


@pytest.mark.parametrize("paused", [True, False])
def test_another_image_needs_its_own_units(tmp_path: Path, paused: bool) -> None:
    """Hosts get a large image in place of a small one while they are inspected. With our pause, as
    the policy adds it, they wait for their units; without it, they are counted.
    """
    names = ["a", "b", "c"]

    async def scene(world: World) -> None:
        world.operator.pool_put(IMAGES, PoolWanted(limit=1, expire="keep"))
        world.nodes.seconds["inspecting"] = 400.0
        world.nodes.seconds["deploying"] = 1e6
        async with world.governor(LARGE_ONES) as governor:
            for name in names:
                await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.reached(names, "inspecting"), governor)
            for name in names:
                await image(world, name, LARGE, **(OWN if paused else {}))

            def large() -> list[bool]:
                return [one.forced for one in world.operator.leases(IMAGES, "granted")]

            wanted = [False] if paused else [True] * 3
            await world.until(lambda: large() == wanted, governor)
            count = 1 if paused else 3
            await world.until(
                lambda: sum(world.reached([one], "provisioning") for one in names) == count,
                governor,
            )
            for _ in range(3):
                assert await governor.tick()
            assert large() == wanted
            assert sum(world.reached([one], "provisioning") for one in names) == count

    play(tmp_path, scene, failing=0.0)


RACKS = Rules(rules=(Rule(pool=POOL), Rule(pool=f"{POOL}/{{labels.rack}}")))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_pool_that_is_made_later_counts_its_hosts(tmp_path: Path, restarted: bool) -> None:
    """A host works whose rack has no pool, and then waits for its image. Once the pool is made, the
    host is counted there, also by a governor that was restarted meanwhile, and goes on.
    """

    async def scene(world: World) -> None:
        world.nodes.seconds["inspecting"] = 400.0
        await world.api.create(ALL, host("a", labels={"rack": "new"}))
        await world.until(lambda: world.reached(["a"], "inspecting"))

        async def units(governor: Governor) -> None:
            await world.until(
                lambda: (
                    [one.forced for one in world.operator.leases(f"{POOL}/new", "granted")]
                    == [True]
                ),
                governor,
            )
            assert await governor.tick()
            assert not governor.picture.uncounted

        async with world.governor(RACKS) as governor:
            assert await governor.tick()
            await image(world, "a", **OWN)
            for _ in range(3):
                assert await governor.tick()
            assert governor.picture.uncounted.keys() == {f"{POOL}/new"}
            if not restarted:
                world.operator.pool_put(f"{POOL}/new", PoolWanted(limit=9, expire="keep"))
                await units(governor)
                await goes_on(world, governor)
        if restarted:
            world.operator.pool_put(f"{POOL}/new", PoolWanted(limit=9, expire="keep"))
            async with world.governor(RACKS) as governor:
                await units(governor)
                await goes_on(world, governor)

    play(tmp_path, scene, failing=0.0)


async def goes_on(world: World, governor: Governor) -> None:
    """Return when the host `a` has no pause any more."""
    async with asyncio.timeout(SOON):
        await world.until(lambda: PAUSED not in annotations(world.host("a")), governor)


def test_a_host_without_a_pool_that_loses_its_image(tmp_path: Path) -> None:
    """The only pool of a host does not exist, so it cannot be counted; it has our pause for its
    image. When the image is removed, it has nothing to wait for, and loses our pause.
    """
    rules: Any = Rules(rules=(Rule(pool=f"{POOL}/{{labels.rack}}"),))

    async def scene(world: World) -> None:
        world.nodes.seconds["inspecting"] = 400.0
        await world.api.create(ALL, host("a", labels={"rack": "nowhere"}))
        await world.until(lambda: world.reached(["a"], "inspecting"))
        async with world.governor(rules) as governor:
            await image(world, "a", **OWN)
            for _ in range(3):
                assert await governor.tick()
            assert annotations(world.host("a"))[PAUSED] == OWN[PAUSED]
            assert uid_of(world.host("a")) in governor.picture.refused
            await world.api.merge(f"{ALL}/a", {"spec": {"image": None}})
            await goes_on(world, governor)

    play(tmp_path, scene, failing=0.0)
