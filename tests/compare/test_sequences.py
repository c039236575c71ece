"""1,000 random requests on SQLite are answered as the original answers them.

The seed is fixed: a change is judged by what it changes. MOORAGE_SEED sets another one, and with
MOORAGE_SOAK there is a new seed, 50,000 requests and both engines.
"""

import os
from pathlib import Path

from tests.compare.runs import ENOUGH, Task, play
from tests.e2e.support.chance import seeded
from tests.support import cluster

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
REQUESTS = 50_000 if SOAK else ENOUGH
LENGTH = 200
SEED = 1


def test_as_the_original_answers(tmp_path: Path) -> None:
    """What differs is made small; the failure shows it, and the seed."""
    databases: dict[str, str | Path] = {"sqlite": tmp_path / "ledger"}
    if SOAK:
        databases["postgresql"] = cluster.fresh()
    with seeded(None if SOAK else SEED) as seed:
        totals = play(Task(str(seed), REQUESTS, LENGTH, tmp_path, databases))
        assert not totals.found, "\n".join(totals.found)
    assert totals.random >= REQUESTS
    assert totals.refused() == []
