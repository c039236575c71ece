"""Which requests need a unit, and which nodes occupy one."""

import pytest

from moorage.integrations.ironic.states import (
    BUSY,
    BUSY_FROM,
    EVENTS,
    HOLD,
    Requirement,
    is_busy,
    own_requirement_of,
    requirement_of,
)


@pytest.mark.parametrize(
    ("verb", "state", "expected"),
    [
        ("active", "available", Requirement.UNIT),
        ("active", "active", Requirement.NOTHING),
        ("rebuild", "active", Requirement.UNIT),
        ("manage", "enroll", Requirement.UNIT),
        ("manage", "available", Requirement.NOTHING),
        ("provide", "manageable", Requirement.UNIT),
        ("abort", "clean wait", Requirement.NOTHING),
        ("unhold", "clean hold", Requirement.UNIT),
        ("deleted", "active", Requirement.FORCED),
        ("undeploy", "deploying", Requirement.FORCED),
        ("active", "deploying", Requirement.NOTHING),
        ("nosuchverb", "available", Requirement.UNIT),
        ("nosuchverb", "active", Requirement.UNIT),
        ("nosuchverb", "deploying", Requirement.NOTHING),
        ("abort", "no such state", Requirement.UNIT),
        ("deleted", "no such state", Requirement.FORCED),
    ],
)
def test_what_a_request_needs(verb: str, state: str, expected: Requirement) -> None:
    """Only what makes a node busy needs a unit; a tear-down is never held back."""
    assert requirement_of(verb, state) is expected


def test_a_busy_node_needs_no_second_unit() -> None:
    """It has one already, whatever is asked of it."""
    for verb in EVENTS:
        assert {requirement_of(verb, state) for state in BUSY} <= {
            Requirement.NOTHING,
            Requirement.FORCED,
        }


def test_every_verb_has_a_rule() -> None:
    """A verb that is missing in the table would pass without a unit."""
    assert {*EVENTS.values()} == {*BUSY_FROM}


def test_holds_count_if_they_should() -> None:
    """By default a node on hold is not busy."""
    assert not any(is_busy(state) for state in HOLD)
    assert all(is_busy(state, hold_counts=True) for state in BUSY | HOLD)
    assert not is_busy("available", hold_counts=True)


@pytest.mark.parametrize("verb", EVENTS)
def test_nothing_that_moorage_starts_is_forced(verb: str) -> None:
    """Wishes and rollouts need a unit wherever a verb starts work, and nothing elsewhere."""
    for state in (*BUSY, *HOLD, *set().union(*BUSY_FROM.values()), "manageable", "available"):
        starts = state in BUSY_FROM[EVENTS[verb]]
        expected = Requirement.UNIT if starts else Requirement.NOTHING
        assert own_requirement_of(verb, state) is expected, state
        if EVENTS[verb] != "delete":
            assert requirement_of(verb, state) is expected, state
