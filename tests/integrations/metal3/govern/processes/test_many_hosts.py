"""A hundred hosts, with `MOORAGE_SOAK` a thousand, of which one in five fails and starts again."""

import asyncio
from pathlib import Path

import pytest

from tests.integrations.metal3.govern.processes.world import ALL, POOL, World
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host
from tests.support.seeds import SOAK

pytestmark = pytest.mark.thorough

HOSTS, LIMIT, SCALE, SECONDS = (1_000, 100, 30.0, 1_200.0) if SOAK else (100, 25, 100.0, 120.0)
OTHERS = 5


def test_many_hosts(tmp_path: Path) -> None:
    """Hosts are inspected, then all get an image at once, and our webhook adds the pause in the
    very write. Never more than the limit are busy, in the book of the nodes, which has every
    change of theirs; at the end all are provisioned, and no lease and no pause of ours is left. No
    idle available host was ever paused, and hosts under another pause were not touched.
    """
    names = [f"host-{number}" for number in range(HOSTS)]
    others = [f"other-{number}" for number in range(OTHERS)]

    async def scene(world: World) -> None:
        foreign = {PAUSED: "metal3.io/capm3"}
        for name in others:
            await world.api.create(ALL, host(name, image="http://image", annotations=foreign))
        versions = [world.host(name) for name in others]
        async with world.observed(), world.governor():
            await asyncio.gather(*(world.api.create(ALL, host(name)) for name in names))
            await world.until(lambda: world.number(names, "available") == HOSTS)
            await world.until(lambda: not world.leases())
            await asyncio.gather(*(world.image(name, "http://image") for name in names))
            await world.until(lambda: world.number(names, "provisioned") == HOSTS)
            await world.until(lambda: not world.leases())
        assert world.nodes.book.most_busy == LIMIT
        failed = [name for name in names if world.nodes.fails(f"metal3~{name}")]
        assert len(failed) > HOSTS / 10
        for name in names:
            times = world.nodes.book.times(f"metal3~{name}", "deploying")
            assert times == 1 + (name in failed)
            assert PAUSED not in annotations(world.host(name) or {})
        assert [world.host(name) for name in others] == versions
        pauses = sum(PAUSED in annotations(found) for found in world.versions)
        assert pauses >= 2 * HOSTS, "the webhook has paused each of them twice"
        world.check_pauses()

    async def run() -> None:
        async with World(tmp_path, {POOL: LIMIT}, failing=0.2, scale=SCALE) as world:
            await asyncio.wait_for(scene(world), SECONDS)

    asyncio.run(run())
