"""Reading nodes, and changing what is Moorage's own on them."""

import asyncio

import pytest

from moorage.integrations.ironic.nodes import IronicError, NodeReader
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble


def test_a_request_is_sent_once() -> None:
    """The connection is lost after Ironic has begun: no answer, and nothing is sent again."""

    async def run() -> None:
        async with IronicDouble(1) as double, NodeReader(double.url) as nodes:
            (node,) = await nodes.all(["uuid"])
            await nodes.node(str(node["uuid"]), ["uuid"])
            double.faults.pending.append(Fault("provision", work="first", answer="drop"))
            status, _ = await nodes.provision(str(node["uuid"]), {"target": "active"})
            assert status is None
            assert double.counts["provision"] == 1

    asyncio.run(run())


def test_ironic_is_replaced_by_an_older_one() -> None:
    """The API version is found again once Ironic has refused it."""

    async def run() -> None:
        async with IronicDouble(1) as double, NodeReader(double.url) as nodes:
            await nodes.all(["uuid"])
            nodes._version = "1.999"
            with pytest.raises(IronicError):
                await nodes.all(["uuid"])
            assert len(await nodes.all(["uuid"])) == 1

    asyncio.run(run())
