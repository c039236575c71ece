"""Many hosts on a real API server: the limit holds, whatever ends or stops meanwhile."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.installed import policy
from tests.kubernetes.metal3.world import ALL, IMAGE, World
from tests.support.admission_cases import GOVERNOR
from tests.support.kubernetes_client import Kubernetes, host

LIMIT = 4
SECONDS = 240.0
FREEZE_SECONDS = 3.0


@pytest.fixture(scope="module", autouse=True)
def paused(cluster: KubernetesCluster) -> Iterator[None]:
    """Install the policy and the rights of the manifests."""
    with policy(cluster):
        yield


def play(world: World, scene: Callable[[World], Awaitable[None]]) -> None:
    """Run a scene; an error says what there was."""

    async def run() -> None:
        async with world:
            try:
                await asyncio.wait_for(scene(world), SECONDS)
            except TimeoutError:
                raise AssertionError(world.report()) from None

    asyncio.run(run())


async def done(world: World, names: list[str]) -> None:
    """Return when all hosts have their image, and no unit is left."""
    await world.until(lambda: world.provisioned(names) and world.unpaused(names))
    await world.until(lambda: not world.leases())


def test_forty_hosts(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """With a limit of 4, an operator of 8 workers, and a fifth of the first deployments failing:
    never more than 4 nodes are busy, at times 4 are, and all hosts are provisioned.
    """
    names = [f"many-{number}" for number in range(40)]
    world = World(cluster, tmp_path, limit=LIMIT, failing=0.2)

    async def scene(world: World) -> None:
        async with world.governor():
            await world.create(names)
            await done(world, names)

    play(world, scene)
    assert world.nodes.book.most_busy == LIMIT
    failed = [name for name in names if world.nodes.fails(f"metal3~{name}")]
    assert failed
    for name in names:
        times = world.nodes.book.times(f"metal3~{name}", "deploying")
        assert times == (2 if name in failed else 1)
    world.check_log()
    events = cluster.call("GET", "/api/v1/namespaces/metal3/events?limit=5000")["items"]
    ours = [one for one in events if one["source"].get("component") == "moorage"]
    assert {one["involvedObject"]["name"] for one in ours if one["reason"] == "Started"} >= {*names}


def test_without_a_pause_the_limit_does_not_hold(
    cluster: KubernetesCluster, tmp_path: Path
) -> None:
    """The control: hosts that nobody pauses, because the governor's own user creates them, are all
    busy at once, and counted.
    """
    names = [f"control-{number}" for number in range(2 * LIMIT)]
    world = World(cluster, tmp_path, limit=LIMIT)

    async def scene(world: World) -> None:
        async with (
            world.governor(),
            Kubernetes(cluster.url, token=cluster.token, tls=cluster.tls, user=GOVERNOR) as api,
        ):
            await asyncio.gather(*(api.create(ALL, host(name, image=IMAGE)) for name in names))
            await world.until(lambda: world.nodes.book.most_busy > LIMIT)
            await world.until(lambda: len(world.leases()) > LIMIT)

    play(world, scene)


DISTURBANCES = ("kill server", "stop server", "freeze server", "kill etcd")


def test_kills_at_random(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """Two governors. The API server and etcd are killed and stopped at random times, and both
    governors are killed each time: the limit holds, all hosts are provisioned, and no unit is left.
    """
    names = [f"kills-{number}" for number in range(16)]
    world = World(cluster, tmp_path, limit=LIMIT, failing=0.2)
    random = Random(1)

    async def disturb(world: World, what: str) -> None:
        match what:
            case "kill server":
                await asyncio.to_thread(cluster.restart_server)
            case "stop server":
                await asyncio.to_thread(cluster.restart_server, signal.SIGTERM)
            case "freeze server":
                cluster.server.freeze()
                await asyncio.to_thread(cluster.server.gone, FREEZE_SECONDS)
                cluster.server.thaw()
            case "kill etcd":
                await asyncio.to_thread(cluster.restart_etcd)

    def more_done(before: int) -> bool:
        return world.number(names) > before or world.provisioned(names)

    async def scene(world: World) -> None:
        await world.create(names)
        finished = 0
        for what in random.sample(DISTURBANCES, k=len(DISTURBANCES)):
            async with world.governor(), world.governor():
                await world.until(partial(more_done, finished))
                finished = world.number(names)
                await disturb(world, what)
        async with world.governor(), world.governor():
            await done(world, names)

    play(world, scene)
    assert world.nodes.book.most_busy == LIMIT
    world.check_log()
