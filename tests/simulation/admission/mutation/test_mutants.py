"""The bugs that `make mutate` plants can still be planted."""

import pytest

from tests.simulation.admission.mutation.bugs import BUGS, Bug
from tests.simulation.admission.mutation.mutants import broken


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.invariant} {bug.said}")
def test_bugs_can_be_planted(bug: Bug) -> None:
    """The replaced text exists once, and the result is valid Python, or SQL as before."""
    planted = broken(bug)
    if bug.path.endswith(".py"):
        compile(planted, bug.path, "exec")


def test_every_invariant_has_a_bug() -> None:
    """I1 to I20, each at least one."""
    assert {bug.invariant for bug in BUGS} == {f"I{n}" for n in range(1, 21)}
