"""Which writes get our pause; the policy is held to the same table by `make metal3`."""

import pytest

from moorage.integrations.metal3.admission_decision import pauses
from tests.support.admission_cases import CASES, GOVERNOR, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_write_is_paused_if_a_host_can_start_now_but_not_before(case: Case) -> None:
    """Every row of the table holds."""
    found = pauses(case.new, case.old, case.user, GOVERNOR, case.manager)
    assert found is case.pauses
