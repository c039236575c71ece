"""Runs seeds of hosts, metal3's operator, Moorage and governors with every kind of fault.

`MOORAGE_METAL3_SEED` repeats one seed. `MOORAGE_SOAK=1` continues with new seeds for
`SOAK_SECONDS`.
"""

import os
import random
from time import monotonic

import pytest

from tests.simulation.metal3.simulation import Metal3Simulation

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SEEDS = 600 if SOAK else 60
CHUNKS = 6
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
ONE = os.environ.get("MOORAGE_METAL3_SEED")


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_METAL3_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """The limit holds for hosts in every seed, and without faults every host is served."""
    size = SEEDS // CHUNKS
    runs = [Metal3Simulation(seed).run() for seed in range(chunk * size, (chunk + 1) * size)]
    assert sum(run.auditor.governed for run in runs) > 5 * size, "hardly anything happens"
    assert sum(run.auditor.adopted for run in runs) > 0, "nothing is adopted"


@pytest.mark.skipif(ONE is None, reason="MOORAGE_METAL3_SEED is not set")
def test_one_seed() -> None:
    """The seed that is asked for."""
    Metal3Simulation(int(ONE or 0)).run()


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        Metal3Simulation(seed).run()
        seed += 1


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert Metal3Simulation(13).run().story() == Metal3Simulation(13).run().story()
