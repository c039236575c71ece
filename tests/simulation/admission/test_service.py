"""The seeded world around the real service, on a failing disk.

`MOORAGE_SEED` repeats one seed. `MOORAGE_SOAK=1` continues with new seeds.
"""

import random
from pathlib import Path
from time import monotonic

import pytest

from tests.simulation.admission.service import ServiceSimulation
from tests.simulation.admission.test_seeds import ONE, SOAK, SOAK_SECONDS

SEEDS = 48
CHUNKS = 8


@pytest.mark.skipif(ONE is not None, reason="MOORAGE_SEED asks for one seed")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_service_seeds(tmp_path: Path, chunk: int) -> None:
    """Acknowledged changes are there after every end, and no invariant is ever broken."""
    size = SEEDS // CHUNKS
    for seed in range(chunk * size, (chunk + 1) * size):
        (tmp_path / str(seed)).mkdir()
        ServiceSimulation(seed, tmp_path / str(seed)).run()


@pytest.mark.skipif(ONE is None, reason="MOORAGE_SEED is not set")
def test_one_service_seed(tmp_path: Path) -> None:
    """The seed that is asked for."""
    ServiceSimulation(int(ONE or 0), tmp_path).run()


@pytest.mark.skipif(not SOAK, reason="MOORAGE_SOAK is not set")
def test_new_service_seeds(tmp_path: Path) -> None:
    """New seeds, for as long as the soak lasts."""
    end = monotonic() + SOAK_SECONDS
    seed = random.randrange(10**9)
    while monotonic() < end:
        (tmp_path / str(seed)).mkdir()
        ServiceSimulation(seed, tmp_path / str(seed)).run()
        seed += 1
