"""Moorage answers as the original does if every provider has an agent that offers everything."""

from pathlib import Path

import pytest

from tests.compare.runs import Task, Totals, play
from tests.support.agents.proxy import ALL, NOTHING

pytestmark = pytest.mark.thorough

SEED = "1"
REQUESTS = 200


def played(folder: Path, agents: str) -> Totals:
    """Play one sequence, and count all differences."""
    databases: dict[str, str | Path] = {"sqlite": folder / "ledger"}
    return play(Task(SEED, REQUESTS, REQUESTS, folder, databases, survey=True, agents=agents))


def test_agents_that_offer_everything_are_not_noticed(tmp_path: Path) -> None:
    """Answers, generations included, are those of a ledger without agents."""
    totals = played(tmp_path, ALL)
    assert not totals.failed, totals.text()
    assert totals.carried_out["PUT /allocations/{consumer}"]
    assert totals.carried_out["PUT /resource_providers/{provider}/inventories"]


def test_agents_that_offer_nothing_are_noticed(tmp_path: Path) -> None:
    """The control: claims are refused and candidates are missing."""
    totals = played(tmp_path, NOTHING)
    assert totals.failed
    kinds = "\n".join(map(str, totals.survey.kinds))
    assert "/allocation" in kinds, kinds
