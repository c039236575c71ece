"""Seeds of a fleet with every kind of fault, checked by the auditor; see `tests.support.seeds`."""

import asyncio
import tempfile
from pathlib import Path

from tests.simulation.fleet.simulation import FleetSimulation
from tests.support.seeds import new_seeds, one_seed, seeds


def run(seed: int) -> FleetSimulation:
    """Run one seed."""
    with tempfile.TemporaryDirectory(prefix="moorage-fleet-") as folder:
        return asyncio.run(FleetSimulation(seed, Path(folder)).run())


@seeds(24, chunk=4)
def test_seeds(seeds: range) -> None:
    """Nothing that the auditor watches is ever broken, and with faults over all is well."""
    runs = [run(seed) for seed in seeds]
    assert sum(one.auditor.starts for one in runs) > 0, "nothing starts"


@one_seed
def test_one_seed(seed: int) -> None:
    """The seed that is asked for."""
    run(seed)


def test_new_seeds() -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        run(seed)


def test_a_seed_repeats() -> None:
    """The same seed gives the same story."""
    assert run(12).story() == run(12).story()
