"""Seeds of hosts, metal3's operator, Moorage and governors; see `tests.support.seeds`."""

import pytest

from tests.simulation.metal3.simulation import Metal3Simulation
from tests.support.seeds import SOAK, new_seeds, one_seed, seeds

pytestmark = pytest.mark.usefixtures("quiet")


@seeds(600 if SOAK else 60, chunk=10)
def test_seeds(seeds: range) -> None:
    """The limit holds for hosts in every seed, and without faults every host is served."""
    runs = [Metal3Simulation(seed).run() for seed in seeds]
    assert sum(run.auditor.governed for run in runs) > 5 * len(seeds), "hardly anything happens"
    assert sum(run.auditor.adopted for run in runs) > 0, "nothing is adopted"


@one_seed
def test_one_seed(seed: int) -> None:
    """The seed that is asked for."""
    Metal3Simulation(seed).run()


def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        Metal3Simulation(seed).run()


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert Metal3Simulation(13).run().story() == Metal3Simulation(13).run().story()
