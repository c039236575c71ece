"""Runs seeds of a fleet whose providers a random client of the Placement API changes."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.simulation.fleet.clients import ClientSimulation

SEEDS, CHUNKS, STEPS = 12, 4, 120


def run(seed: int) -> ClientSimulation:
    """Run one seed."""
    with tempfile.TemporaryDirectory(prefix="moorage-clients-") as folder:
        return asyncio.run(ClientSimulation(seed, Path(folder)).run(STEPS))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds(chunk: int) -> None:
    """Whatever a client does, the ledger offers what the agents say, and nothing more is taken."""
    size = SEEDS // CHUNKS
    runs = [run(seed) for seed in range(chunk * size, (chunk + 1) * size)]
    assert sum(one.taken for one in runs) > 0, "nothing is taken"
