"""Runs seeds of reporters with every kind of fault.

`MOORAGE_REPORTERS_SEED` repeats one seed. `MOORAGE_SOAK=1` continues with new seeds for
`SOAK_SECONDS`.
"""

import os
import random
from time import monotonic

import pytest

from tests.simulation.reporters.simulation import ReporterSimulation

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SEEDS = 600 if SOAK else 24
CHUNKS = 2
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
ONE = os.environ.get("MOORAGE_REPORTERS_SEED")


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_REPORTERS_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """No two reporters ever write one node, and without faults the ledger says what Ironic has."""
    size = SEEDS // CHUNKS
    runs = [ReporterSimulation(seed).run() for seed in range(chunk * size, (chunk + 1) * size)]
    books = [run.auditor for run in runs]
    assert sum(one.accepted for one in books) > 10 * size, "hardly anything is written"
    assert sum(one.moved for one in books) > size, "hardly any node moves"
    assert sum(one.fenced for one in books) > 0, "nobody is fenced"
    assert sum(one.removed for one in books) > 0, "nothing is removed"


@pytest.mark.skipif(ONE is None, reason="MOORAGE_REPORTERS_SEED is not set")
def test_one_seed() -> None:
    """The seed that is asked for."""
    ReporterSimulation(int(ONE or 0)).run()


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        ReporterSimulation(seed).run()
        seed += 1


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert ReporterSimulation(7).run().story() == ReporterSimulation(7).run().story()
