"""A request that starts work is sent soon, or not at all: later its unit may be somebody else's."""

import asyncio
from typing import Any

import pytest
from multidict import CIMultiDict

from moorage.integrations.connections import CONNECT_SECONDS
from moorage.integrations.ironic.gate import upstream
from moorage.integrations.ironic.gate.upstream import AwayError, Upstream
from moorage.integrations.ironic.nodes import NodeReader
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble
from tests.support.virtual_loop import VirtualLoop, run, turns

FOREVER = 1e9
CONNECTIONS = 100
"""That aiohttp opens at once by default."""

PATIENCE = CONNECT_SECONDS + 1
"""aiohttp rounds times of some seconds up to whole ones."""


async def give_up(loop: VirtualLoop, waiting: asyncio.Task[Any]) -> None:
    """Let the time for a connection pass; a request waits for one until then, and no longer."""
    await turns()
    assert not waiting.done()
    loop.advance(PATIENCE)
    await turns()
    assert waiting.done()


def test_a_gate_does_not_wait_for_a_turn_among_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While Ironic answers nothing and all connections are in use, a request counts as not sent."""
    monkeypatch.setattr(upstream, "CONNECTIONS_MAX", 1)

    async def scene(loop: VirtualLoop) -> None:
        async with asyncio.timeout(60.0), IronicDouble(2) as double, Upstream(double.url) as ironic:
            double.faults.pending.append(Fault("provision", wait=FOREVER, work="never"))
            path, headers = "/v1/nodes/{}/states/provision", CIMultiDict[str]()
            first = asyncio.create_task(ironic.send("PUT", path.format("node-1"), headers))
            await double.received("provision")
            second = asyncio.create_task(ironic.send("PUT", path.format("node-2"), headers))
            await give_up(loop, second)
            assert isinstance(second.exception(), AwayError)
            assert double.counts["provision"] == 1
            first.cancel()

    run(scene)


def test_a_governor_does_not_wait_for_a_turn_among_its_connections() -> None:
    """While Ironic answers nothing and all connections are in use, a request has no answer."""

    async def scene(loop: VirtualLoop) -> None:
        async with (
            asyncio.timeout(60.0),
            IronicDouble(1) as double,
            NodeReader(double.url) as ironic,
        ):

            def asked() -> asyncio.Task[tuple[int | None, str]]:
                return asyncio.create_task(ironic.provision("node-1", {"target": "active"}))

            fault = Fault("provision", times=CONNECTIONS, wait=FOREVER, work="never")
            await ironic.node("node-1", ["uuid"])
            double.faults.pending.append(fault)
            hanging = [asked() for _ in range(CONNECTIONS)]
            await double.received("provision", CONNECTIONS)
            await give_up(loop, last := asked())
            assert last.result()[0] is None
            assert double.counts["provision"] == CONNECTIONS
            for one in hanging:
                one.cancel()

    run(scene)
