"""Seeds of a fleet whose providers a random client of the Placement API changes."""

import asyncio
import tempfile
from pathlib import Path

from tests.simulation.fleet.clients import ClientSimulation
from tests.support.seeds import seeds

STEPS = 120


def run(seed: int) -> ClientSimulation:
    """Run one seed."""
    with tempfile.TemporaryDirectory(prefix="moorage-clients-") as folder:
        return asyncio.run(ClientSimulation(seed, Path(folder)).run(STEPS))


@seeds(12, chunk=3)
def test_seeds(seeds: range) -> None:
    """Whatever a client does, the ledger offers what the agents say, and nothing more is taken."""
    runs = [run(seed) for seed in seeds]
    assert sum(one.taken for one in runs) > 0, "nothing is taken"
