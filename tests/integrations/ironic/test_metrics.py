"""The reference describes exactly the metrics that the gate and the governor export."""

import re

from prometheus_client import CollectorRegistry, generate_latest

from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.govern.metrics import GovernorMetrics
from tests.docs.test_links import ROOT

TYPE = re.compile(r"^# TYPE (moorage_\w+) (\w+)$", re.MULTILINE)
ROW = re.compile(r"^\| `(moorage_\w+)` \| (\w+) \|", re.MULTILINE)


def test_metrics_are_documented() -> None:
    """Each with its type, and no other."""
    registry = CollectorRegistry()
    registry.register(GovernorMetrics())
    text = GateMetrics().text().decode() + generate_latest(registry).decode()
    exported = {(name, kind) for name, kind in TYPE.findall(text) if not name.endswith("_created")}
    assert len(exported) == 16
    assert {*ROW.findall((ROOT / "docs/reference/gate.md").read_text())} == exported
