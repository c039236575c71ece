"""The bugs that `make mutate` plants can still be planted."""

import pytest

from tests.simulation.mutation.adaptive_bugs import ADAPTIVE_BUGS
from tests.simulation.mutation.admission_bugs import ADMISSION_BUGS
from tests.simulation.mutation.booking_bugs import BOOKING_BUGS
from tests.simulation.mutation.bug import Bug
from tests.simulation.mutation.client_bugs import CLIENT_BUGS
from tests.simulation.mutation.fleet_bugs import FLEET_BUGS
from tests.simulation.mutation.gate_bugs import GATE_BUGS
from tests.simulation.mutation.metal3_bugs import METAL3_BUGS
from tests.simulation.mutation.mutants import BUGS, broken
from tests.simulation.mutation.provisioning_bugs import PROVISIONING_BUGS
from tests.simulation.mutation.reporter_bugs import REPORTER_BUGS
from tests.simulation.mutation.reshape_bugs import RESHAPE_BUGS
from tests.simulation.mutation.search_bugs import SEARCH_BUGS


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.invariant} {bug.said}")
def test_bugs_can_be_planted(bug: Bug) -> None:
    """The replaced text exists once, and the result is valid Python, or SQL as before."""
    planted = broken(bug)
    if bug.path.endswith(".py"):
        compile(planted, bug.path, "exec")


def test_every_invariant_has_a_bug() -> None:
    """Of admission, bookings, fleet, provisioning, reporters, metal3, the search, and so on."""
    assert {bug.invariant for bug in CLIENT_BUGS} == {f"C{n}" for n in range(1, 7)}
    assert {bug.invariant for bug in ADMISSION_BUGS} == {f"I{n}" for n in range(1, 29)}
    numbered = {bug.invariant for bug in FLEET_BUGS} - {"brake"}
    assert numbered == {f"F{n}" for n in range(1, 22)}
    assert {bug.invariant for bug in PROVISIONING_BUGS} == {f"P{n}" for n in range(1, 9)}
    assert {bug.invariant for bug in REPORTER_BUGS} == {f"R{n}" for n in range(1, 12)}
    assert {bug.invariant for bug in GATE_BUGS} == {"G1"}
    assert {bug.invariant for bug in RESHAPE_BUGS} == {"T1", "T2", "T3"}
    assert {bug.invariant for bug in ADAPTIVE_BUGS} == {f"A{n}" for n in range(1, 8)}
    assert {bug.invariant for bug in BOOKING_BUGS} == {f"B{n}" for n in range(1, 7)}
    assert {bug.invariant for bug in SEARCH_BUGS} == {"S1", "S2", "S3"}
    assert {bug.invariant for bug in METAL3_BUGS} == {
        *("P1", "P2", "P7"),
        *(f"H{n}" for n in (1, 2, 3, 5, 6, 7, 8)),
    }
