"""Runs seeds of a fleet with every kind of fault, checked by the auditor.

`MOORAGE_FLEET_SEED` repeats one seed. `MOORAGE_SOAK=1` continues with new seeds for `SOAK_SECONDS`.
"""

import asyncio
import os
import random
import tempfile
from pathlib import Path
from time import monotonic

import pytest

from tests.simulation.fleet.simulation import FleetSimulation

SOAK = bool(os.environ.get("MOORAGE_SOAK"))
SEEDS, CHUNKS = 24, 6
SOAK_SECONDS = float(os.environ.get("MOORAGE_SOAK_SECONDS", "600"))
ONE = os.environ.get("MOORAGE_FLEET_SEED")


def run(seed: int) -> FleetSimulation:
    """Run one seed."""
    with tempfile.TemporaryDirectory(prefix="moorage-fleet-") as folder:
        return asyncio.run(FleetSimulation(seed, Path(folder)).run())


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_FLEET_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """Nothing that the auditor watches is ever broken, and with faults over all is well."""
    size = SEEDS // CHUNKS
    runs = [run(seed) for seed in range(chunk * size, (chunk + 1) * size)]
    assert sum(one.auditor.starts for one in runs) > 0, "nothing starts"


@pytest.mark.skipif(ONE is None, reason="MOORAGE_FLEET_SEED is not set")
def test_one_seed() -> None:
    """The seed that is asked for."""
    run(int(ONE or 0))


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        run(seed)
        seed += 1


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert run(12).story() == run(12).story()
