"""Governors as processes that are killed and stopped, and servers that go away."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integrations.metal3.govern.processes.world import ALL, POOL, WEBHOOKS, World
from tests.support.bmo_double.hosts import PAUSED, annotations
from tests.support.kubernetes_client import host
from tests.support.seeds import SOAK

pytestmark = pytest.mark.thorough

HOSTS, LIMIT = (20, 2) if SOAK else (5, 2)
POINTS = range(3, 200) if SOAK else range(3, 10)
"""After the identity of the cluster and the list. The third request is the watch, which lasts."""
SECONDS = 600.0 if SOAK else 90.0
SCALE = 200.0


def names_of(number: int) -> list[str]:
    """Return the names of this many hosts."""
    return [f"host-{one}" for one in range(number)]


async def all_are_well(world: World, names: list[str]) -> None:
    """Return when all hosts are provisioned and no lease is left; check how it came to that."""
    await world.until(lambda: world.number(names, "provisioned") == len(names))
    await world.until(lambda: not world.leases())
    assert world.nodes.book.most_busy <= LIMIT
    for name in names:
        assert PAUSED not in annotations(world.host(name) or {})
        times = world.nodes.book.times(f"metal3~{name}", "deploying")
        assert times == 1 + world.nodes.fails(f"metal3~{name}")


def play(folder: Path, scene: object, failing: float = 0.2) -> None:
    """Run a scene."""

    async def run() -> None:
        async with World(folder, {POOL: LIMIT}, failing=failing, scale=SCALE) as world:
            await asyncio.wait_for(scene(world), SECONDS)  # type: ignore[operator] # a coroutine

    asyncio.run(run())


def test_killed_again_and_again(tmp_path: Path) -> None:
    """One governor after the other gets SIGKILL: the first one at its third request to
    Kubernetes, the next one at its fourth, and so on, before or after it is carried out. The limit
    holds, every host is deployed as often as if nothing had happened, and nobody is forgotten.
    """
    names = names_of(HOSTS)

    async def scene(world: World) -> None:
        for name in names:
            await world.api.create(ALL, host(name, image="http://image"))
        killed = 0
        for point in POINTS:
            if world.number(names, "provisioned") == HOSTS:
                break
            async with world.governor(short_grace=True) as process:
                world.double.governed = 0

                def kill(number: int, process: asyncio.subprocess.Process = process) -> None:
                    if number == point and process.returncode is None:  # noqa: B023 - this round's
                        process.kill()

                before = point % 2 == 1
                setattr(world.double, "arrived" if before else "carried_out", kill)
                ended = asyncio.create_task(process.wait())
                await world.until(
                    lambda ended=ended: (  # type: ignore[misc] # the loop's own
                        ended.done() or world.number(names, "provisioned") == HOSTS
                    )
                )
                killed += ended.done()
                world.double.arrived = world.double.carried_out = lambda _: None
        async with world.governor(short_grace=True):
            await all_are_well(world, names)
        assert killed >= min(4, len(POINTS))

    play(tmp_path, scene)


def test_stopped_and_continued(tmp_path: Path) -> None:
    """Of two governors one is stopped in the middle of a request, and goes on after the other one
    has done half of the work. Meanwhile the API server and Moorage are restarted, and watches are
    cut, after which their version is too old. The limit holds, and all hosts are provisioned.
    """
    names = names_of(2 * HOSTS + 2)

    async def scene(world: World) -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(world.governor(short_grace=True))
            stopped = asyncio.Event()

            def stop(number: int) -> None:
                if number == 6:
                    first.send_signal(signal.SIGSTOP)
                    stopped.set()

            world.double.arrived = stop
            for name in names:
                await world.api.create(ALL, host(name, image="http://image"))
            await stopped.wait()
            await stack.enter_async_context(world.governor(short_grace=True))
            await world.until(lambda: world.number(names, "provisioned") >= 3)
            await world.double.stop()
            await world.double.start()
            await world.until(lambda: world.number(names, "provisioned") >= 5)
            await world.restart_moorage()
            world.double.forget()
            world.double.drop_watches()
            await world.until(lambda: world.number(names, "provisioned") >= 7)
            first.send_signal(signal.SIGCONT)
            await all_are_well(world, names)

    play(tmp_path, scene)


def test_control_without_a_governor(tmp_path: Path) -> None:
    """The control: without the webhook's pause more hosts are busy than the limit permits."""
    names = names_of(HOSTS)

    async def scene(world: World) -> None:
        (webhook,) = (await world.api.get(WEBHOOKS))["items"]
        await world.api.delete(f"{WEBHOOKS}/{webhook['metadata']['name']}")
        for name in names:
            await world.api.create(ALL, host(name, image="http://image"))
        await world.until(lambda: world.number(names, "provisioned") == HOSTS)
        assert world.nodes.book.most_busy > LIMIT

    play(tmp_path, scene)
