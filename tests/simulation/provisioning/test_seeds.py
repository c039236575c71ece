"""Seeds of hosts, Ironic, Moorage and gates with every kind of fault; see `tests.support.seeds`."""

import pytest

from tests.simulation.provisioning.simulation import ProvisioningSimulation
from tests.support.seeds import SOAK, new_seeds, one_seed, seeds

pytestmark = pytest.mark.usefixtures("quiet")


@seeds(1_200 if SOAK else 150, chunk=15)
def test_seeds(seeds: range) -> None:
    """The limit holds for hosts in every seed, and without faults everybody is served."""
    runs = [ProvisioningSimulation(seed).run() for seed in seeds]
    assert sum(run.auditor.governed for run in runs) > 5 * len(seeds), "hardly anything happens"
    assert sum(run.auditor.adopted for run in runs) > 0, "nothing is adopted"


@one_seed
def test_one_seed(seed: int) -> None:
    """The seed that is asked for."""
    ProvisioningSimulation(seed).run()


def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        ProvisioningSimulation(seed).run()


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert ProvisioningSimulation(13).run().story() == ProvisioningSimulation(13).run().story()
