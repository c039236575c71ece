"""Seeds of a world with every kind of fault, checked by the auditor; see `tests.support.seeds`."""

from tests.simulation.admission.simulation import Simulation
from tests.support.seeds import SOAK, new_seeds, one_seed, seeds

SEEDS = 2_000 if SOAK else 1_000
"""Some bugs of `make mutate` need hundreds of seeds, as those of two moves at the same moment."""


@seeds(SEEDS, chunk=50)
def test_seeds(seeds: range) -> None:
    """Nothing that the auditor watches is ever broken, and with faults over all are served."""
    runs = [Simulation(seed).run() for seed in seeds]
    assert sum(run.auditor.grants for run in runs) > 4 * len(seeds), "hardly anything happens"
    assert all(run.working == 0 for run in runs if run.liveness)


@one_seed
def test_one_seed(seed: int) -> None:
    """The seed that is asked for."""
    Simulation(seed).run()


def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        Simulation(seed).run()


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert Simulation(12).run().story() == Simulation(12).run().story()
