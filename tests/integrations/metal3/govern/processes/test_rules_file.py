"""Several pools by a rules file, and what happens to hosts later."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from tests.integrations.metal3.govern.processes.world import ALL, World
from tests.support.bmo_double.book import BUSY
from tests.support.bmo_double.hosts import INSPECT, PAUSED, annotations, deployed, state
from tests.support.kubernetes_client import host

RULES = """
[[rule]]
pool = "rack-{labels.rack}"

[[rule]]
pool = "images"
verbs = ["provision"]
where = { image = "http://images/large-*" }

[[rule]]
pool = "arm"
where = { architecture = "aarch64" }

[[exempt]]
where = { "labels.urgent" = "yes" }
"""
LIMITS = {"rack-a": 3, "rack-b": 2, "images": 1, "arm": 1}
LARGE, SMALL = "http://images/large-1", "http://images/small-1"
SECONDS = 100.0
HOSTS = 18


def busiest(world: World, names: Iterable[str], states: set[str] = BUSY) -> int:
    """Return how many of these hosts were ever busy at once, by the book of the nodes."""
    nodes, busy, most = {f"metal3~{name}" for name in names}, set[str](), 0
    for line in world.nodes.book.lines:
        if line.node in nodes:
            (busy.add if line.state in states else busy.discard)(line.node)
            most = max(most, len(busy))
    return most


def test_several_pools(tmp_path: Path) -> None:
    """Hosts of two racks, some with a large image, some of another architecture: each pool's limit
    holds. Urgent hosts never wait, and are counted: the others of their rack wait for them.
    """
    racks = {name: [f"{name}-{n}" for n in range(HOSTS // 2)] for name in ("a", "b")}
    names = [name for rack in racks.values() for name in rack]
    large = [name for name in names if name.endswith(("0", "3", "6"))]
    arm = [name for name in names if name.endswith(("1", "4"))]
    urgent = ["urgent-0", "urgent-1", "urgent-2"]
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)

    async def scene(world: World) -> None:
        for rack, hosts in racks.items():
            for name in hosts:
                wanted = host(name, image=LARGE if name in large else SMALL, labels={"rack": rack})
                wanted["spec"] |= {"inspectionMode": "disabled"}
                wanted["spec"] |= {"architecture": "aarch64"} if name in arm else {}
                await world.api.create(ALL, wanted)
        async with world.observed(), world.governor("--rules", str(rules)):
            await world.until(lambda: world.number(names, "provisioning") >= 2)
            for name in urgent:
                labels = {"rack": "b", "urgent": "yes"}
                await world.api.create(ALL, host(name, image=SMALL, labels=labels))
            await world.until(lambda: busiest(world, urgent) == len(urgent))
            await world.until(lambda: world.number([*names, *urgent], "provisioned") == HOSTS + 3)
            await world.until(lambda: not world.leases())
        assert busiest(world, racks["a"]) == LIMITS["rack-a"]
        assert busiest(world, racks["b"]) == LIMITS["rack-b"]
        assert busiest(world, large, {"deploying"}) == LIMITS["images"]
        assert busiest(world, arm) == LIMITS["arm"]
        world.check_pauses()

    async def run() -> None:
        async with World(tmp_path, LIMITS, failing=0.2) as world:
            await asyncio.wait_for(scene(world), SECONDS)

    asyncio.run(run())


def test_later_lives(tmp_path: Path) -> None:
    """Of hosts with one unit in all: another image is deployed after the old one was removed, an
    annotation inspects a host again, one is deleted while it waits and one while it is deployed.
    What is removed is never held back, but counted; at the end nothing is left.
    """
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\npool = "one"\n')
    names = ["changed", "inspected", "waiting", "deployed"]

    async def scene(world: World) -> None:
        def has(name: str, url: str) -> bool:
            found = world.host(name) or {}
            return state(found) == "provisioned" and deployed(found)[0] == url

        async with world.observed(), world.governor("--rules", str(rules)):
            await world.api.create(ALL, host("changed", image=SMALL))
            await world.api.create(ALL, host("inspected"))
            await world.until(lambda: has("changed", SMALL))
            await world.until(lambda: world.number(["inspected"], "available") == 1)
            assert world.nodes.book.most_busy == 1
            await world.image("changed", LARGE)
            await world.until(lambda: world.number(["changed"], "deprovisioning") == 1)
            await world.api.merge(f"{ALL}/inspected", {"metadata": {"annotations": {INSPECT: ""}}})
            assert annotations(world.host("inspected") or {})[PAUSED] == "moorage"
            await world.until(lambda: has("changed", LARGE))
            await world.until(
                lambda: (
                    INSPECT not in annotations(world.host("inspected") or {INSPECT: {}})
                    and world.number(["inspected"], "available") == 1
                )
            )
            await world.api.create(ALL, host("deployed", image=SMALL))
            await world.until(lambda: world.number(["deployed"], "provisioning") == 1)
            await world.api.create(ALL, host("waiting", image=SMALL))
            await world.until(lambda: bool(list(world.admission.leases("one", "waiting"))))
            await world.api.delete(f"{ALL}/waiting")
            await world.api.delete(f"{ALL}/deployed")
            await world.until(lambda: world.host("waiting") is None)
            await world.until(lambda: world.host("deployed") is None)
            await world.until(lambda: not world.leases())
            assert not list(world.admission.leases("one", "waiting"))
        assert world.nodes.book.most_busy <= 2, "a removal is over the limit"
        assert world.nodes.book.times("metal3~inspected", "inspecting") == 2
        assert busiest(world, names, {"deploying", "inspecting"}) == 1
        world.check_pauses()

    async def run() -> None:
        async with World(tmp_path, {"one": 1}) as world:
            await asyncio.wait_for(scene(world), SECONDS)

    asyncio.run(run())
