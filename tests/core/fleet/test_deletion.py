"""Groups of reporters that are deleted: refusals, and what their names remember."""

import pytest

from moorage.core.errors import Code, Error
from moorage.core.fleet import deletion, members
from moorage.core.fleet.facts import Facts
from moorage.core.ids import ProviderId
from moorage.core.limits import DELETED_INSTANCES_MAX, MEMBERS_KEPT_HOURS, MEMBERS_MAX
from tests.core.fleet.test_members import instance, joined, known, when
from tests.core.ledger.build import Refused, provider_id

LATER = when(100)
DAY = MEMBERS_KEPT_HOURS * 3_600


def deleted(facts: Facts, *pools: str) -> None:
    """Delete group `g` when all its members have been silent for long."""
    facts.apply(deletion.delete(facts, LATER, "g", pools))


def test_refusals_name_some() -> None:
    """Live members come first, then pools; of many a few are named."""
    facts = known()
    with Refused(Code.GROUP_NOT_FOUND):
        deleted(facts)
    for n in range(7):
        joined(facts, f"m{n}", n)
    with pytest.raises(Error, match=r"7 live members \(m0, m1, m2, m3, m4 and 2 more\): stop"):
        deletion.delete(facts, when(), "g", ["p"])
    with pytest.raises(Error, match=r"2 pools \(p, q\) still have units .*: give these pools"):
        deletion.delete(facts, LATER, "g", ["q", "p"])
    deleted(facts)
    assert (facts.reporter_groups, facts.members) == ({}, {})


def test_numbers_continue() -> None:
    """No token of a deleted group is issued again, nor a generation of its pins."""
    facts = known()
    first = joined(facts, "a", 1)
    deleted(facts)
    with Refused(Code.GROUP_BEING_DELETED):
        joined(facts, "a", 2, LATER)
    facts.apply(deletion.cleared(facts.deleted_groups["g"]))
    with Refused(Code.FENCED):
        joined(facts, "a", 1, LATER)
    second = joined(facts, "a", 2, LATER)
    assert (first.token, second.token) == ("3.1", "3.2")
    with Refused(Code.FENCED):
        members.check_current(facts, "g", "a", first.token)


def test_pins_of_another_group_stay() -> None:
    """Only pins of the deleted group are removed, and only those that are there."""
    facts = known()
    joined(facts, "a", 1)
    deleted(facts)
    one, two = provider_id(1), provider_id(2)
    facts.pins = {("g", one): "a", ("h", one): "a", ("h", two): "a"}
    made = deletion.clear_pins(facts, facts.deleted_groups["g"], [one, two, ProviderId("x")])
    assert made.pins == {("g", one): None}


def test_what_is_remembered_is_bounded() -> None:
    """The newest instances are, of all deletions; a day after the last one none is."""
    facts = known()
    for number in range(0, 2 * DELETED_INSTANCES_MAX, MEMBERS_MAX):
        for n in range(MEMBERS_MAX):
            joined(facts, f"m{n:02}", number + n)
        deleted(facts)
        facts.apply(deletion.cleared(facts.deleted_groups["g"]))
    left = facts.deleted_groups["g"]
    assert len(left.instances) == DELETED_INSTANCES_MAX
    assert left.instances[-1] == instance(2 * DELETED_INSTANCES_MAX - 1)
    assert not deletion.forget(facts, when(100 + DAY), "g")
    facts.apply(deletion.forget(facts, when(101 + DAY), "g"))
    assert facts.deleted_groups == {}
    assert not deletion.forget(facts, when(101 + DAY), "g")
