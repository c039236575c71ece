"""The alert rules for Prometheus, and which series of a server's metrics each of them reads."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).resolve().parents[2] / "contrib/prometheus/moorage.rules.yml"
METRIC = re.compile(r"(moorage_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def parsed_rules() -> Any:
    """Return the rules; nobody else has a reference to them."""
    return yaml.safe_load(RULES.read_text())


def alerts(given: Any = None) -> Iterator[dict[str, Any]]:
    """Yield all alerts, of the given rules or of those in the file."""
    for group in (parsed_rules() if given is None else given)["groups"]:
        yield from group["rules"]


def read_by(name: str, metrics: str) -> list[float]:
    """Return the values of all series that the condition of an alert reads."""
    (condition,) = [alert["expr"] for alert in alerts() if alert["alert"] == name]
    found = []
    for line in metrics.splitlines():
        series, _, value = line.rpartition(" ")
        for metric, selectors in METRIC.findall(condition):
            if series.partition("{")[0] == metric and _selected(series, selectors):
                found.append(float(value))
    return found


def _selected(series: str, selectors: str) -> bool:
    """Return whether a series has the labels that are asked for."""
    labels = {label: value for label, _, value in MATCHER.findall(series)}
    for label, operator, value in MATCHER.findall(selectors):
        form = value if operator.endswith("~") else re.escape(value)
        if bool(re.fullmatch(form, labels.get(label, ""))) is operator.startswith("!"):
            return False
    return True
