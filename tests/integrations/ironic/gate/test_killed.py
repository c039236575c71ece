"""SIGKILL between any two steps: never too many hosts, and every unit is free again in the end."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import OPERATOR, Between, Stop, World
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble

LEASES, ONE, RECORD = "/v1/leases", "/v1/leases/[^/]+", "/v1/leases/[^/]+/record"
STOPS = {
    "asking": Stop("POST", LEASES, after=False),
    "granted": Stop("POST", LEASES, after=True),
    "sending": Stop("PUT", RECORD, after=False),
    "sent": Stop("PUT", RECORD, after=True),
}
GRACE_SECONDS = 100.0
"""More than an unanswered request may take to arrive."""


async def others(world: World, url: str) -> None:
    """Ask for all other nodes until each has been started."""

    async def start(name: str) -> None:
        while (await world.ask(url, name, "active", OPERATOR)).status != 202:
            await world.double.advance(100)

    await asyncio.gather(*(start(f"node-{number}") for number in (2, 3)))
    await world.double.advance(1_000)


@pytest.mark.parametrize("name", STOPS)
def test_killed_before_ironic_has_the_request(tmp_path: Path, name: str) -> None:
    """The request never arrives; its unit is free after the time in which it could have."""

    async def act(world: World) -> None:
        given = STOPS[name]
        stop = Stop(given.method, given.path, given.after)
        async with Between(world.moorage.url, stop) as between:
            first = await world.gate(moorage=between.url)
            asked = asyncio.create_task(world.ask(first.url, "node-1", "active"))
            await stop.reached.wait()
            await asyncio.to_thread(first.stop, signal.SIGKILL)
            await asyncio.gather(asked, return_exceptions=True)
            second = await world.gate(moorage=between.url)
            between.older = GRACE_SECONDS
            await others(world, second.url)
            await world.occupied(0)
        assert world.double.fleet.busiest == 1
        assert world.double.fleet.find("node-1").state == "available"

    play(tmp_path, IronicDouble(3), 1, act)


@pytest.mark.parametrize("work", ["first", "last", "never"])
def test_killed_while_ironic_has_the_request(tmp_path: Path, work: str) -> None:
    """Ironic has done it, does it later, or never: nothing else starts before this is clear."""

    async def act(world: World) -> None:
        async with Between(world.moorage.url) as between:
            first = await world.gate(moorage=between.url)
            fault = Fault("provision", wait=30.0, work=work)  # type: ignore[arg-type] # of the list
            world.double.faults.pending.append(fault)
            asked = asyncio.create_task(world.ask(first.url, "node-1", "active"))
            await world.double.received("provision")
            await asyncio.to_thread(first.stop, signal.SIGKILL)
            await asyncio.gather(asked, return_exceptions=True)
            second = await world.gate(moorage=between.url)
            got = await world.ask(second.url, "node-2", "active", OPERATOR)
            assert got.status == 409
            await world.double.advance(31)
            await world.tick()
            between.older = GRACE_SECONDS
            await others(world, second.url)
            await world.occupied(0)
        assert world.double.fleet.busiest == 1

    play(tmp_path, IronicDouble(3), 1, act)


@pytest.mark.parametrize("after", [False, True])
def test_killed_before_the_answer_is_stored(tmp_path: Path, after: bool) -> None:
    """The node works, and has its unit until a reading shows that it is over."""

    async def act(world: World) -> None:
        answered = Stop("PUT", RECORD, after)
        async with Between(world.moorage.url) as between:
            first = await world.gate(moorage=between.url)
            world.double.faults.pending.append(Fault("provision", wait=5.0))
            asked = asyncio.create_task(world.ask(first.url, "node-1", "active"))
            await world.double.received("provision")
            between.stop_at(answered)
            await world.double.advance(5)
            await answered.reached.wait()
            await asyncio.to_thread(first.stop, signal.SIGKILL)
            await asyncio.gather(asked, return_exceptions=True)
            second = await world.gate(moorage=between.url)
            got = await world.ask(second.url, "node-2", "active", OPERATOR)
            assert got.status == 409
            between.older = GRACE_SECONDS
            await others(world, second.url)
            await world.occupied(0)
        assert world.double.fleet.busiest == 1
        assert world.double.fleet.find("node-1").state == "active"

    play(tmp_path, IronicDouble(3), 1, act)


@pytest.mark.parametrize("after", [False, True])
def test_killed_while_a_refused_request_gives_its_unit_back(tmp_path: Path, after: bool) -> None:
    """Ironic has refused the request: the unit is free, at the latest after the next reading."""

    async def act(world: World) -> None:
        stop = Stop("POST", "/v1/leases/[^/]+/retry", after)
        async with Between(world.moorage.url, stop) as between:
            first = await world.gate(moorage=between.url)
            world.double.fleet.lock("node-1")
            asked = asyncio.create_task(world.ask(first.url, "node-1", "active"))
            await stop.reached.wait()
            await asyncio.to_thread(first.stop, signal.SIGKILL)
            await asyncio.gather(asked, return_exceptions=True)
            second = await world.gate(moorage=between.url)
            await others(world, second.url)
            await world.occupied(0)
        assert world.double.fleet.busiest == 1

    play(tmp_path, IronicDouble(3), 1, act)
