"""Runs seeds until one of them fails.

Run it as `python -m tests.simulation.mutation.hunt WHAT`: rules, slots, service, fleet, agent,
provisioning, reporters, metal3, spellings, roots, client, search, presence, reshapes, adaptive,
shares or bookings.

Prints which one, and why. Exit code 1: one has failed; 0: all have passed, nothing was caught.
"""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import pytest

from tests.simulation.admission.service import ServiceSimulation
from tests.simulation.admission.simulation import Simulation
from tests.simulation.admission.slots_play import SlotsPlay
from tests.simulation.fleet.simulation import FleetSimulation
from tests.simulation.metal3.simulation import Metal3Simulation
from tests.simulation.mutation.bug import (
    ADAPTIVE,
    AGENT,
    BOOKINGS,
    CLIENT,
    FLEET,
    METAL3,
    PRESENCE,
    PROVISIONING,
    REPORTERS,
    RESHAPES,
    ROOTS,
    RULES,
    SEARCH,
    SERVICE,
    SHARES,
    SLOTS,
    SPELLINGS,
)
from tests.simulation.provisioning.simulation import ProvisioningSimulation
from tests.simulation.reporters.simulation import ReporterSimulation

SEEDS = {
    RULES: 1_500,
    SLOTS: 1_000,
    SERVICE: 300,
    FLEET: 300,
    PROVISIONING: 800,
    REPORTERS: 150,
    METAL3: 200,
}
TESTS = {
    ADAPTIVE: (
        *(f"tests/core/admission/adaptive/test_{name}.py" for name in ("rule", "machine")),
        "tests/core/admission/adaptive/test_sequential_test.py",
    ),
    AGENT: ("tests/client/agent", "tests/service/fleet"),
    SPELLINGS: (
        "tests/integrations/ironic/test_disguises.py",
        "tests/integrations/ironic/test_states.py",
    ),
    ROOTS: ("tests/core/fleet/test_roots.py", "tests/service/fleet/test_successors.py"),
    PRESENCE: (
        "tests/core/admission/presence/test_presence.py",
        "tests/service/admission/presence/test_taken_back.py",
    ),
    RESHAPES: (
        *(f"tests/core/ledger/reshaping/test_{name}.py" for name in ("own_tree", "vacate")),
        *("tests/service/fleet/test_plans.py", "tests/service/ledger/reshapes/test_leases.py"),
    ),
    SHARES: tuple(
        f"tests/core/admission/sharing/test_{name}.py"
        for name in ("together", "preemption", "cohorts", "fair_share")
    ),
    BOOKINGS: ("tests/core/admission/bookings", "tests/service/admission/test_bookings.py"),
    SEARCH: ("tests/core/ledger/search/combine/test_related_groups.py",),
    CLIENT: (
        *(f"tests/client/run/test_{name}.py" for name in ("ends", "starters")),
        *("tests/client/test_proxies.py", "tests/client/leasing/test_own.py"),
        *(f"tests/e2e/run/test_{name}.py" for name in ("withdrawn", "outlived")),
    ),
}
"""The tests that find a bug, the fastest first."""


def run(what: str, seed: int) -> None:
    """Run one seed of the given kind, see `bug.py`."""
    if what == PROVISIONING:
        ProvisioningSimulation(seed).run()
        return
    if what == METAL3:
        Metal3Simulation(seed).run()
        return
    if what == REPORTERS:
        ReporterSimulation(seed).run()
        return
    if what == SLOTS:
        SlotsPlay(seed).run()
        return
    if what == RULES:
        Simulation(seed).run()
        return
    with tempfile.TemporaryDirectory(prefix="moorage-hunt-") as folder:
        if what == SERVICE:
            ServiceSimulation(seed, Path(folder)).run()
        else:
            asyncio.run(FleetSimulation(seed, Path(folder)).run())


def hunt(what: str) -> str:
    """Run seeds, those of both modes in turn; return how one has failed, or nothing."""
    for seed in range(SEEDS[what]):
        try:
            run(what, seed)
        except Exception as error:
            first = " ".join(str(error).splitlines()[:1])
            return f"seed {seed}: {type(error).__name__} {first}"
    return ""


def tested(what: str) -> str:
    """Run the tests of this kind; return how one has failed."""
    outcome = pytest.main(["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *TESTS[what]])
    return "" if outcome is pytest.ExitCode.OK else f"the tests end with {outcome!r}"


def main(what: str) -> int:
    """Hunt, and print what was caught."""
    logging.disable(logging.CRITICAL)
    caught = tested(what) if what in TESTS else hunt(what)
    if caught:
        sys.stdout.write(f"{caught}\n")
    return 1 if caught else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
