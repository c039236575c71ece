"""Runs seeds of hosts, Ironic, Moorage, gates and governors with every kind of fault.

`MOORAGE_PROVISIONING_SEED` repeats one seed. `MOORAGE_SOAK=1` continues with new seeds for
`SOAK_SECONDS`.
"""

import os
import random
from time import monotonic

import pytest

from tests.simulation.provisioning.simulation import ProvisioningSimulation

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SEEDS = 1_200 if SOAK else 150
CHUNKS = 10
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
ONE = os.environ.get("MOORAGE_PROVISIONING_SEED")


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_PROVISIONING_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """The limit holds for hosts in every seed, and without faults everybody is served."""
    size = SEEDS // CHUNKS
    runs = [ProvisioningSimulation(seed).run() for seed in range(chunk * size, (chunk + 1) * size)]
    assert sum(run.auditor.governed for run in runs) > 5 * size, "hardly anything happens"
    assert sum(run.auditor.adopted for run in runs) > 0, "nothing is adopted"


@pytest.mark.skipif(ONE is None, reason="MOORAGE_PROVISIONING_SEED is not set")
def test_one_seed() -> None:
    """The seed that is asked for."""
    ProvisioningSimulation(int(ONE or 0)).run()


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        ProvisioningSimulation(seed).run()
        seed += 1


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert ProvisioningSimulation(13).run().story() == ProvisioningSimulation(13).run().story()
