"""Alert rules read metrics that exist, and each has a section on what to do, and cases."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.test_links import ROOT, anchors
from tests.support.alert_rules import MATCHER, METRIC, RULES, alerts

CASES = ROOT / "tests/alerts/moorage.rules.test.yml"
METRICS = "".join(
    (ROOT / "docs/reference" / name).read_text()
    for name in ("metrics.md", "gate.md", "metal3-governor.md")
)
SEVERITIES = {"critical", "warning", "info"}
RUNBOOK_LABELS = {"job", "instance"}
"""Labels that Prometheus adds to every series."""

GROUPED = re.compile(r"\bby \(([^)]*)\)|\$labels\.(\w+)")


def documented(metric: str) -> str:
    """Return the line that documents a metric. Raises LookupError."""
    for line in METRICS.splitlines():
        if line.startswith(f"| `{metric}` |"):
            return line
    raise LookupError(metric)


@pytest.mark.parametrize("alert", [*alerts()], ids=lambda alert: str(alert["alert"]))
def test_metrics_and_labels_exist(alert: dict[str, Any]) -> None:
    """Every metric of an alert is documented, with each label that the alert uses."""
    read = METRIC.findall(alert["expr"])
    assert read
    lines = [documented(metric) for metric, _ in read if metric != "up"]
    used = {name for _, selectors in read for name, _, _ in MATCHER.findall(selectors)}
    grouped = GROUPED.findall(alert["expr"] + str(alert["annotations"]))
    for several, one in grouped:
        used |= {name.strip() for name in [*several.split(","), one] if name.strip()}
    for name in used - RUNBOOK_LABELS:
        assert any(f"`{name}`" in line for line in lines), name


@pytest.mark.parametrize("alert", [*alerts()], ids=lambda alert: str(alert["alert"]))
def test_each_alert_has_a_section(alert: dict[str, Any]) -> None:
    """It names its severity, says what happened, and links to the section on what to do."""
    assert alert["labels"]["severity"] in SEVERITIES
    assert {*alert["annotations"]} == {"summary", "description", "runbook"}
    path, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert anchor == alert["alert"].lower()
    assert anchor in anchors((ROOT / path).read_text())


def test_each_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    """Promtool runs them (`make alerts`)."""
    cases = yaml.safe_load(CASES.read_text())["tests"]
    for alert in alerts():
        kinds = [
            bool(check["exp_alerts"])
            for case in cases
            for check in case["alert_rule_test"]
            if check["alertname"] == alert["alert"]
        ]
        assert {*kinds} == {True, False}, alert["alert"]


def test_sections_have_alerts() -> None:
    """No section is about an alert that is gone."""
    text = (ROOT / "docs/howto/alerts.md").read_text()
    sections = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sections == [alert["alert"] for alert in alerts()]


def test_an_undocumented_metric_is_found() -> None:
    """This is the control of the first test."""
    with pytest.raises(LookupError):
        documented("moorage_none")
    assert Path(RULES).exists()
