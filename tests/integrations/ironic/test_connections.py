"""A request that starts work is sent soon, or not at all: later its unit may be somebody else's."""

import asyncio

import pytest
from multidict import CIMultiDict

from moorage.integrations import connections
from moorage.integrations.ironic.gate import upstream
from moorage.integrations.ironic.gate.upstream import AwayError, Upstream
from moorage.integrations.ironic.nodes import NodeReader
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble

FOREVER = 1e9
CONNECTIONS = 100
"""That aiohttp opens at once by default."""


def test_a_gate_does_not_wait_for_a_turn_among_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While Ironic answers nothing and all connections are in use, a request counts as not sent."""
    monkeypatch.setattr(upstream, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(upstream, "CONNECT_SECONDS", 0.1)

    async def run() -> None:
        async with asyncio.timeout(30.0), IronicDouble(2) as double, Upstream(double.url) as ironic:
            double.faults.pending.append(Fault("provision", wait=FOREVER, work="never"))
            path, headers = "/v1/nodes/{}/states/provision", CIMultiDict[str]()
            first = asyncio.create_task(ironic.send("PUT", path.format("node-1"), headers))
            await double.received("provision")
            with pytest.raises(AwayError):
                await ironic.send("PUT", path.format("node-2"), headers)
            first.cancel()

    asyncio.run(run())


def test_a_governor_does_not_wait_for_a_turn_among_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While Ironic answers nothing and all connections are in use, a request has no answer."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.1)

    async def run() -> None:
        async with (
            asyncio.timeout(30.0),
            IronicDouble(1) as double,
            NodeReader(double.url) as ironic,
        ):
            fault = Fault("provision", times=CONNECTIONS, wait=FOREVER, work="never")
            await ironic.node("node-1", ["uuid"])
            double.faults.pending.append(fault)
            # One by one, because each of them must get its connection in time.
            hanging = []
            for number in range(CONNECTIONS):
                hanging.append(
                    asyncio.create_task(ironic.provision("node-1", {"target": "active"}))
                )
                await double.received("provision", number + 1)
            assert (await ironic.provision("node-1", {"target": "active"}))[0] is None
            assert double.counts["provision"] == CONNECTIONS
            for one in hanging:
                one.cancel()

    asyncio.run(run())
