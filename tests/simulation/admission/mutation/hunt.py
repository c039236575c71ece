"""Runs seeds until one of them fails.

Run it as `python -m tests.simulation.admission.mutation.hunt rules|slots|service`.

Prints which one, and why. Exit code 1: one has failed; 0: all have passed, nothing was caught.
"""

import logging
import sys
import tempfile
from pathlib import Path

from tests.simulation.admission.service import ServiceSimulation
from tests.simulation.admission.simulation import Simulation
from tests.simulation.admission.slots_play import SlotsPlay

SEEDS = {"rules": 1_500, "slots": 1_000, "service": 300}


def run(what: str, seed: int) -> None:
    """Run one seed, on the pure rules, on slots, or around the service."""
    if what == "slots":
        SlotsPlay(seed).run()
        return
    if what == "rules":
        Simulation(seed).run()
        return
    with tempfile.TemporaryDirectory(prefix="moorage-hunt-") as folder:
        ServiceSimulation(seed, Path(folder)).run()


def main(what: str) -> int:
    """Run seeds, those of both modes in turn."""
    logging.disable(logging.CRITICAL)
    for seed in range(SEEDS[what]):
        try:
            run(what, seed)
        except Exception as error:
            first = " ".join(str(error).splitlines()[:1])
            sys.stdout.write(f"seed {seed}: {type(error).__name__} {first}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
