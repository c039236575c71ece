"""What metal3's operator starts by itself ends at the gate before Ironic, too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.ironic.gate.world import World
from tests.support.bmo_double.ironic_nodes import IronicNodes
from tests.support.bmo_double.operator import Operator
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.server import IronicDouble
from tests.support.kubernetes_client import Kubernetes, host, hosts_in
from tests.support.kubernetes_double.server import KubernetesDouble

ALL = hosts_in("metal3")
SCALE = 400.0
LIMIT = 2
NAMES = [f"host-{number}" for number in range(6)]
FAILING = NAMES[:2]


async def reached(double: KubernetesDouble, state: str) -> None:
    """Return when all hosts are in a state."""
    while True:
        found = [
            double.storage.get(("metal3.io", "baremetalhosts", "metal3", name)) or {}
            for name in NAMES
        ]
        states = {one.get("status", {}).get("provisioning", {}).get("state", "") for one in found}
        if states == {state}:
            return
        await double.storage.changed(1.0)


@pytest.mark.parametrize("gated", [True, False])
def test_retries_end_at_the_gate(tmp_path: Path, gated: bool) -> None:
    """Six hosts get an image at once, two of their deployments fail and start again: the limit of
    two holds but for the tear-downs of the two, which the gate never holds back; all are
    provisioned, and no host shows another error. Without the gate, more nodes are busy.
    """

    async def run(world: World) -> None:
        url = (await world.gate()).url if gated else world.double.url
        agenda = Agenda(SCALE)
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as api,
            IronicNodes(url, agenda) as nodes,
            Operator(api, agenda, nodes),
        ):
            for name in NAMES:
                wanted = host(name)
                wanted["spec"]["inspectionMode"] = "disabled"
                await api.create(ALL, wanted)
            await reached(double, "available")
            failing = asyncio.create_task(fail_deployments(world))
            image = {"spec": {"image": {"url": "http://image"}}}
            await asyncio.gather(*(api.merge(f"{ALL}/{name}", image) for name in NAMES))
            await reached(double, "provisioned")
            await failing
            entered = [state for _, _, state in world.double.busy_history]
            assert entered.count("deploying") == len(NAMES) + len(FAILING)
            assert (world.double.fleet.busiest <= LIMIT + len(FAILING)) is gated
            assert (nodes.refused > 0) is gated, "what the gate held back"
            assert errors(double) == {"provisioning error": {*FAILING}}

    async def play() -> None:
        async with (
            asyncio.timeout(100.0),
            World(tmp_path, IronicDouble(scale=SCALE), LIMIT) as world,
        ):
            await run(world)

    asyncio.run(play())


async def fail_deployments(world: World) -> None:
    """Let the first deployments of two nodes fail."""
    nodes = [world.double.fleet.find(f"metal3~{name}") for name in FAILING]
    while nodes:
        for node in [node for node in nodes if node.state == "deploying"]:
            node.fails = True
            nodes.remove(node)
        await world.tick()


def errors(double: KubernetesDouble) -> dict[str, set[str]]:
    """Return which errors were ever shown of which hosts."""
    found: dict[str, set[str]] = {}
    for change in double.storage.after(0):
        status: dict[str, Any] = change.object.get("status", {})
        if kind := status.get("errorType"):
            found.setdefault(kind, set()).add(change.key[3])
    return found
