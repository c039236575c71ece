"""Moorage on SQLite answers 1,000 random requests as the original does.

The seed is fixed, so that only a change of the code changes the result. MOORAGE_SEED sets another
one; with MOORAGE_SOAK there are a new seed, 50,000 requests and both engines.
"""

from pathlib import Path

import pytest

from tests.compare.runs import ENOUGH, Task, play
from tests.e2e.support.chance import seeded
from tests.support import cluster
from tests.support.seeds import SOAK

pytestmark = pytest.mark.thorough

REQUESTS = 50_000 if SOAK else ENOUGH
LENGTH = 200
SEED = 1


def test_answers_are_those_of_the_original(tmp_path: Path) -> None:
    """A failure shows the smallest sequence with a difference, and the seed."""
    databases: dict[str, str | Path] = {"sqlite": tmp_path / "ledger"}
    if SOAK:
        databases["postgresql"] = cluster.fresh()
    with seeded(None if SOAK else SEED) as seed:
        totals = play(Task(str(seed), REQUESTS, LENGTH, tmp_path, databases))
        assert not totals.found, "\n".join(totals.found)
    assert totals.random >= REQUESTS
    assert totals.refused() == []
