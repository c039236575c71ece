"""Seeds of reporters with every kind of fault; see `tests.support.seeds`."""

import pytest

from tests.simulation.reporters.simulation import ReporterSimulation
from tests.support.seeds import SOAK, new_seeds, one_seed, seeds

pytestmark = pytest.mark.usefixtures("quiet")


@seeds(600 if SOAK else 24, chunk=12)
def test_seeds(seeds: range) -> None:
    """No two reporters ever write one node, and without faults the ledger says what Ironic has."""
    runs = [ReporterSimulation(seed).run() for seed in seeds]
    books = [run.auditor for run in runs]
    assert sum(one.accepted for one in books) > 10 * len(seeds), "hardly anything is written"
    assert sum(one.moved for one in books) > len(seeds), "hardly any node moves"
    assert sum(one.fenced for one in books) > 0, "nobody is fenced"
    assert sum(one.removed for one in books) > 0, "nothing is removed"


@one_seed
def test_one_seed(seed: int) -> None:
    """The seed that is asked for."""
    ReporterSimulation(seed).run()


def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        ReporterSimulation(seed).run()


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert ReporterSimulation(7).run().story() == ReporterSimulation(7).run().story()
