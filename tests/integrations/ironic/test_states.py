"""Which requests need a unit, and which nodes occupy one."""

import pytest

from moorage.integrations.ironic.states import (
    BUSY,
    BUSY_FROM,
    EVENTS,
    HOLD,
    Admission,
    admission_of,
    is_busy,
)


@pytest.mark.parametrize(
    ("verb", "state", "expected"),
    [
        ("active", "available", Admission.UNIT),
        ("active", "active", Admission.NOTHING),
        ("rebuild", "active", Admission.UNIT),
        ("manage", "enroll", Admission.UNIT),
        ("manage", "available", Admission.NOTHING),
        ("provide", "manageable", Admission.UNIT),
        ("abort", "clean wait", Admission.NOTHING),
        ("unhold", "clean hold", Admission.UNIT),
        ("deleted", "active", Admission.FORCED),
        ("undeploy", "deploying", Admission.FORCED),
        ("active", "deploying", Admission.NOTHING),
        ("no-such-verb", "available", Admission.NOTHING),
    ],
)
def test_what_a_request_needs(verb: str, state: str, expected: Admission) -> None:
    """Only what makes a node busy needs a unit; a tear-down is never held back."""
    assert admission_of(verb, state) is expected


def test_a_busy_node_needs_no_second_unit() -> None:
    """It has one already, whatever is asked of it."""
    for verb in EVENTS:
        assert {admission_of(verb, state) for state in BUSY} <= {
            Admission.NOTHING,
            Admission.FORCED,
        }


def test_every_verb_has_a_rule() -> None:
    """A verb that is missing in the table would pass without a unit."""
    assert {*EVENTS.values()} == {*BUSY_FROM, "delete"}


def test_holds_count_if_they_should() -> None:
    """By default a node on hold is not busy."""
    assert not any(is_busy(state) for state in HOLD)
    assert all(is_busy(state, hold_counts=True) for state in BUSY | HOLD)
    assert not is_busy("available", hold_counts=True)
