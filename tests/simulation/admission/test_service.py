"""Seeds of the world around the real service, on a failing disk; see `tests.support.seeds`."""

from pathlib import Path

from tests.simulation.admission.service import ServiceSimulation
from tests.support.seeds import new_seeds, one_seed, seeds


def run(seed: int, folder: Path) -> None:
    """Run one seed in a folder of its own."""
    (folder / str(seed)).mkdir()
    ServiceSimulation(seed, folder / str(seed)).run()


@seeds(48, chunk=6)
def test_service_seeds(tmp_path: Path, seeds: range) -> None:
    """Acknowledged changes are there after every end, and no invariant is ever broken."""
    for seed in seeds:
        run(seed, tmp_path)


@one_seed
def test_one_service_seed(tmp_path: Path, seed: int) -> None:
    """The seed that is asked for."""
    run(seed, tmp_path)


def test_new_service_seeds(tmp_path: Path) -> None:
    """New seeds, for as long as the soak lasts."""
    for seed in new_seeds():
        run(seed, tmp_path)
