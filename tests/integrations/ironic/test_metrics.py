"""The reference describes exactly the metrics that the gate and the governor export and serve."""

import asyncio
import re
import socket
from urllib.request import urlopen

from prometheus_client import generate_latest

from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.reconcile import NODES, Picture
from moorage.integrations.provisioning.pass_metrics import GovernorMetrics
from tests.docs.test_links import ROOT
from tests.integrations.ironic.world import World, played

TYPE = re.compile(r"^# TYPE (moorage_\w+) (\w+)$", re.MULTILINE)
ROW = re.compile(r"^\| `(moorage_\w+)` \| (\w+) \|", re.MULTILINE)


def test_metrics_are_documented() -> None:
    """Each with its type, and no other."""
    shown = (GateMetrics().registry, GovernorMetrics(NODES, Picture()).registry)
    text = "".join(generate_latest(registry).decode() for registry in shown)
    exported = {(name, kind) for name, kind in TYPE.findall(text) if not name.endswith("_created")}
    assert len(exported) == 16
    assert {*ROW.findall((ROOT / "docs/reference/gate.md").read_text())} == exported


@played(3, 1)
async def test_a_governor_serves_them(it: World) -> None:
    """After its first pass they say what it has seen."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    async with it.process("--metrics-listen", address) as process:
        assert process.stdout is not None
        assert b"governing" in await process.stdout.readline()
        text = (await asyncio.to_thread(urlopen, f"http://{address}/metrics")).read().decode()
    found = dict(re.findall(r"^(moorage_[^ ]*) (.*)$", text, re.MULTILINE))
    assert found["moorage_ironic_nodes"] == "3.0"
    assert found['moorage_ironic_busy_nodes{conductor=""}'] == "1.0"
    assert found["moorage_ironic_adopted_nodes_total"] == "1.0"
    assert float(found["moorage_ironic_pass_age_seconds"]) < 30
