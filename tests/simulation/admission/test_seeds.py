"""Runs seeds of a world with every kind of fault, checked by the auditor.

`MOORAGE_SEED` repeats one seed. `MOORAGE_SOAK=1` runs twice as many, and continues with new seeds
for `SOAK_SECONDS`.
"""

import os
import random
from time import monotonic

import pytest

from tests.simulation.admission.simulation import Simulation

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SEEDS = 2_000 if SOAK else 1_000
"""Some bugs of `make mutate` need hundreds of seeds, as those of two moves at the same moment."""

CHUNKS = 20
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
ONE = os.environ.get("MOORAGE_SEED")


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """Nothing that the auditor watches is ever broken, and with faults over all are served."""
    size = SEEDS // CHUNKS
    runs = [Simulation(seed).run() for seed in range(chunk * size, (chunk + 1) * size)]
    assert sum(run.auditor.grants for run in runs) > 4 * size, "hardly anything happens"
    assert all(run.working == 0 for run in runs if run.liveness)


@pytest.mark.skipif(ONE is None, reason="MOORAGE_SEED is not set")
def test_one_seed() -> None:
    """The seed that is asked for."""
    Simulation(int(ONE or 0)).run()


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        Simulation(seed).run()
        seed += 1


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert Simulation(12).run().story() == Simulation(12).run().story()
