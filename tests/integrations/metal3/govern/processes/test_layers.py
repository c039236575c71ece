"""Order by pauses, and truth by the gate before Ironic: both, and the first one alone.

What each permits with a limit of two, if two of six first deployments fail:

| layers | nodes busy at once | the operator |
|---|---|---|
| none | more than the limit and its failures | starts what it likes |
| the gate | the limit, and the tear-downs of failed deployments | is refused again and again |
| pauses | the limit | is refused nothing |
| both | the limit | is refused hardly anything, if at all |

The first two are in `test_operator_at_the_gate.py`.
"""

import asyncio
from pathlib import Path

import pytest

from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import PoolWanted
from tests.integrations.ironic.gate.world import World
from tests.integrations.metal3.test_operator_at_the_gate import (
    ALL,
    FAILING,
    LIMIT,
    NAMES,
    SCALE,
    errors,
    fail_deployments,
    reached,
)
from tests.support.bmo_double.hosts import PAUSED
from tests.support.bmo_double.ironic_nodes import IronicNodes
from tests.support.bmo_double.operator import Operator
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.server import IronicDouble
from tests.support.kubernetes_client import Kubernetes, host
from tests.support.kubernetes_double.server import KubernetesDouble

ORDER = "deploy/order"
"""A pool of its own: a host has a unit for its turn, and one while its node is busy."""


async def govern(world: World, double: KubernetesDouble, stop: asyncio.Event) -> None:
    """Let a governor make passes until it is stopped."""
    async with (
        LeaseApi(world.moorage.url, world.token) as leases,
        KubernetesApi(Connection(double.url)) as api,
    ):
        governor = Governor(HostLeases(leases), HostRequests(api), Rules.of_pool(ORDER))
        while not stop.is_set():
            await governor.tick()
            await double.storage.changed(0.2)
        await governor.close()


@pytest.mark.parametrize("gated", [True, False])
def test_layers(tmp_path: Path, gated: bool) -> None:
    """With pauses never more than the limit are busy, tear-downs included, with and without the
    gate; all are provisioned, and what the operator starts again by itself holds its unit.
    """

    async def run(world: World) -> None:
        url = (await world.gate()).url if gated else world.double.url
        world.admission.pool_put(ORDER, PoolWanted(limit=LIMIT, expire="keep"))
        agenda, stop = Agenda(SCALE), asyncio.Event()
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as api,
            IronicNodes(url, agenda) as nodes,
            Operator(api, agenda, nodes),
        ):
            governing = asyncio.create_task(govern(world, double, stop))
            for name in NAMES:
                wanted = host(name, annotations={PAUSED: "moorage"})
                wanted["spec"]["inspectionMode"] = "disabled"
                await api.create(ALL, wanted)
            await reached(double, "available")
            failing = asyncio.create_task(fail_deployments(world))
            image = {
                "spec": {"image": {"url": "http://image"}},
                "metadata": {"annotations": {PAUSED: "moorage"}},
            }
            await asyncio.gather(*(api.merge(f"{ALL}/{name}", image) for name in NAMES))
            await reached(double, "provisioned")
            await failing
            stop.set()
            await governing
            entered = [state for _, _, state in world.double.busy_history]
            assert entered.count("deploying") == len(NAMES) + len(FAILING)
            assert world.double.fleet.busiest == LIMIT
            assert gated or nodes.refused == 0
            assert errors(double) == {"provisioning error": {*FAILING}}

    async def play() -> None:
        async with (
            asyncio.timeout(90.0),
            World(tmp_path, IronicDouble(scale=SCALE), LIMIT) as world,
        ):
            await run(world)

    asyncio.run(play())
