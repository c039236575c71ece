"""Tickets that a plan would let wait in vain, and those that it would not."""

import pytest

from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping.effects import Effect, InventorySet, ProviderRenamed
from moorage.core.ledger.reshaping.stranding import Ticket, stranded
from moorage.core.limits import TICKETS_NAMED_MAX
from tests.core.ledger.build import C1, P1, P2

HALF = InventorySet(P1, "VCPU", InventorySpec(8), InventorySpec(4))
GONE = InventorySet(P1, "VCPU", InventorySpec(8), None)
FULL = InventorySet(P1, "VCPU", InventorySpec(8), InventorySpec(8, reserved=8))
SMALL = InventorySet(P1, "VCPU", InventorySpec(8), InventorySpec(8, max_unit=2))
NEW = InventorySet(P1, "VCPU", None, InventorySpec(8))


def ticket(allocations: Allocations) -> Ticket:
    """Return a ticket."""
    return Ticket(LeaseId("ticket"), C1, allocations)


@pytest.mark.parametrize(
    ("effect", "place", "amount", "is_named"),
    [
        (GONE, P1, 1, True),
        (HALF, P1, 5, True),
        (HALF, P1, 4, False),
        (FULL, P1, 1, True),
        (SMALL, P1, 3, True),
        (SMALL, P1, 2, False),
        (GONE, P1, 9, False),
        (GONE, P2, 1, False),
        (NEW, P1, 1, False),
        (ProviderRenamed(P1, "a", "b"), P1, 1, False),
    ],
    ids=[
        *("gone", "too small", "large enough", "reserved", "in too large pieces", "small enough"),
        *("never possible", "elsewhere", "possible", "a name"),
    ],
)
def test_only_what_a_plan_takes_away_is_named(
    effect: Effect, place: ProviderId, amount: int, is_named: bool
) -> None:
    """A ticket that could never be granted is none of its business."""
    note = stranded([effect], [ticket({place: {"VCPU": amount}})], more=False)
    assert (note is not None) is is_named
    if note is not None:
        assert note.consumers == {C1: "ticket"}
        assert "1 waiting ticket would wait in vain" in note.message
        assert f"VCPU of provider {P1}" in note.message


def test_it_is_enough_that_one_of_several_places_is_gone() -> None:
    """The message has that one."""
    both = ticket({P2: {"VCPU": 1}, P1: {"DISK_GB": 1, "VCPU": 1}})
    note = stranded([GONE], [both], more=True)
    assert note is not None
    assert "At least 1 waiting ticket" in note.message
    assert f"VCPU of provider {P1}" in note.message


def test_the_first_are_named_and_all_are_counted() -> None:
    """A line may be long."""
    count = TICKETS_NAMED_MAX + 7
    many = (Ticket(LeaseId(f"{n}"), ConsumerId(f"{n}"), {P1: {"VCPU": 1}}) for n in range(count))
    note = stranded([GONE], many, more=False)
    assert note is not None
    assert [*note.consumers.values()] == [f"{n}" for n in range(TICKETS_NAMED_MAX)]
    assert note.message.startswith(f"{count} waiting tickets")
