"""A node can be drained, and a service with several processes goes on meanwhile."""

from pathlib import Path

import pytest

from tests.kubernetes.chart.helm import Helm
from tests.kubernetes.chart.sets import SETS
from tests.kubernetes.draining import undrainable


@pytest.mark.parametrize("name", SETS)
def test_nodes_can_be_drained(tmp_path: Path, name: str) -> None:
    """One of several pods at a time may go, and one that does not work at any time."""
    assert undrainable(Helm(tmp_path).template(SETS[name])) == []


def test_what_a_drain_would_stop_is_found(tmp_path: Path) -> None:
    """This is the control: values can take the budget and the time away."""
    values = SETS["postgresql"]
    without = {"drainSeconds": 0, "podDisruptionBudget": {"enabled": False}}
    objects = Helm(tmp_path).template({**values, "server": {**values["server"], **without}})
    assert undrainable(objects) == [
        "Deployment/moorage can lose all pods at once, or keeps a node from being drained",
        "Deployment/moorage ends while nodes still send it new connections",
    ]
