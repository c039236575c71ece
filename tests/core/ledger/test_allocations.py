"""A claim gets all its allocations or none, and never exceeds capacity."""

import pytest

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger import allocations
from moorage.core.ledger.allocations import ANY, KEEP, ConsumerRequest
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Consumer, Inventory
from moorage.core.limits import MAX_INT
from tests.core.ledger.build import (
    C1,
    C2,
    C3,
    NOW,
    P1,
    P2,
    P3,
    THEN,
    Refused,
    add_class,
    add_consumer,
    add_provider,
    facts,
    request,
)


def catalog() -> Facts:
    """Return facts with two providers of 8 VCPU and 100 GB each."""
    known = facts()
    for uuid in (P1, P2):
        add_provider(known, uuid, VCPU=Inventory(8), DISK_GB=Inventory(100))
    return known


def claim(known: Facts, *requests: ConsumerRequest) -> None:
    """Decide the requests together and apply the changes to the facts."""
    known.apply(allocations.replace_for(known, NOW, list(requests)))


def usage(known: Facts) -> dict[str, int]:
    """Return the used amounts that are not zero, keyed `P1.VCPU`."""
    names = {P1: "P1", P2: "P2", P3: "P3"}
    return {
        f"{names[uuid]}.{name}": held.used
        for uuid, inventories in known.inventories.items()
        for name, held in inventories.items()
        if held.used
    }


def test_a_first_claim() -> None:
    """The consumer gets generation 1, and each provider's generation rises by one."""
    known = catalog()
    wanted = {P1: {"VCPU": 3, "DISK_GB": 10}, P2: {"VCPU": 1}}
    changes = allocations.replace_for(known, NOW, [request(C1, wanted)])
    assert changes.consumers == {
        C1: Consumer(C1, 1, "project", "user", "INSTANCE", wanted, NOW, NOW)
    }
    known.apply(changes)
    assert usage(known) == {"P1.VCPU": 3, "P1.DISK_GB": 10, "P2.VCPU": 1}
    assert [known.providers[uuid].generation for uuid in (P1, P2)] == [1, 1]


def test_a_refusal_changes_nothing() -> None:
    """A refused claim changes no facts and creates no consumer."""
    known, fresh = catalog(), catalog()
    with Refused(Code.CAPACITY_EXCEEDED):
        claim(known, request(C1, {P1: {"VCPU": 1}, P2: {"VCPU": 9}}))
    assert known == fresh


def test_a_claim_replaces_all_allocations() -> None:
    """Former allocations are released; a provider that is only left keeps its generation."""
    known = catalog()
    add_consumer(known, C1, {P1: {"VCPU": 8, "DISK_GB": 5}})
    claim(known, request(C1, {P2: {"VCPU": 8}}, generation=1))
    assert usage(known) == {"P2.VCPU": 8}
    assert known.consumers[C1].generation == 2
    assert known.consumers[C1].created_at == THEN
    assert [known.providers[uuid].generation for uuid in (P1, P2)] == [0, 1]


def test_an_empty_claim_removes_the_consumer() -> None:
    """An empty claim deletes the consumer and raises the generations of its providers.

    The next claim of the consumer must expect generation null.
    """
    known = catalog()
    add_consumer(known, C1, {P1: {"VCPU": 8}})
    claim(known, request(C1, {}, generation=1))
    assert C1 not in known.consumers
    assert usage(known) == {}
    assert known.providers[P1].generation == 1
    claim(known, request(C1, {P1: {"VCPU": 1}}, generation=None))
    assert known.consumers[C1].generation == 1


def test_an_empty_claim_of_a_new_consumer_changes_nothing() -> None:
    """A consumer without allocations that asks for none is not created."""
    known, fresh = catalog(), catalog()
    claim(known, request(C1, {}))
    assert known == fresh


@pytest.mark.parametrize(
    ("stored", "sent", "text"),
    [
        (None, 5, "expected null but got 5"),
        (None, 0, "expected null but got 0"),
        (1, None, "expected 1 but got None"),
        (3, 2, "expected 3 but got 2"),
        (3, 4, "expected 3 but got 4"),
    ],
)
def test_consumer_generations(stored: int | None, sent: int | None, text: str) -> None:
    """An outdated consumer generation is refused, with the expected and the sent one."""
    known = catalog()
    if stored is not None:
        add_consumer(known, C1, {P1: {"VCPU": 1}}, generation=stored)
    with Refused(Code.CONSUMER_GENERATION) as refusal:
        claim(known, request(C1, {P1: {"VCPU": 1}}, generation=sent))
    assert f"consumer generation conflict - {text}" in refusal.message


def test_any_generation_is_not_checked() -> None:
    """Before 1.28 requests have no consumer generation; it rises nevertheless."""
    known = catalog()
    for expected in (1, 2):
        claim(known, ConsumerRequest(C1, {P1: {"VCPU": 1}}, "p", "u", generation=ANY))
        assert known.consumers[C1].generation == expected


def test_project_user_and_type_follow_the_request() -> None:
    """A changed project and user are stored; KEEP keeps the type, None removes it."""
    known = catalog()
    add_consumer(known, C1, {P1: {"VCPU": 1}}, consumer_type="INSTANCE")
    claim(known, ConsumerRequest(C1, {P1: {"VCPU": 1}}, "p2", "u2", KEEP))
    held = known.consumers[C1]
    assert (held.project_id, held.user_id, held.consumer_type) == ("p2", "u2", "INSTANCE")
    claim(known, ConsumerRequest(C1, {P1: {"VCPU": 1}}, "p2", "u2", None))
    assert known.consumers[C1].consumer_type is None
    claim(known, ConsumerRequest(C2, {P1: {"VCPU": 1}}, "p2", "u2", KEEP))
    assert known.consumers[C2].consumer_type is None


def test_unknown_provider_and_class_leave_no_consumer() -> None:
    """After such a refusal the corrected request still expects generation null."""
    known, fresh = catalog(), catalog()
    with Refused(Code.PROVIDER_UNKNOWN) as refusal:
        claim(known, request(C1, {P1: {"VCPU": 1}, P3: {"VCPU": 1}}))
    assert f"Allocation for resource provider '{P3}' that does not exist." in refusal.message
    with Refused(Code.CLASS_UNKNOWN) as refusal:
        claim(known, request(C1, {P1: {"CUSTOM_NO": 1}}))
    assert "No such resource class CUSTOM_NO" in refusal.message
    assert known == fresh
    claim(known, request(C1, {P1: {"VCPU": 1}}))
    assert known.consumers[C1].generation == 1


def test_a_known_class_that_is_not_offered() -> None:
    """A class without an inventory on the provider is refused, standard or custom."""
    known = catalog()
    add_class(known, "CUSTOM_GPU")
    for name in ("MEMORY_MB", "CUSTOM_GPU"):
        with Refused(Code.INVENTORY_MISSING) as refusal:
            claim(known, request(C1, {P1: {name: 1}}))
        assert f"Inventory for '{name}' on resource provider '{P1}' invalid." in refusal.message


@pytest.mark.parametrize(
    ("amount", "fine"), [(1, False), (2, True), (3, False), (6, True), (7, False), (8, False)]
)
def test_unit_sizes(amount: int, fine: bool) -> None:
    """An amount must be at least min_unit, at most max_unit, and a multiple of step_size."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(64, min_unit=2, max_unit=6, step_size=2))
    if fine:
        claim(known, request(C1, {P1: {"VCPU": amount}}))
        assert usage(known) == {"P1.VCPU": amount}
        return
    with Refused(Code.UNITS_VIOLATED) as refusal:
        claim(known, request(C1, {P1: {"VCPU": amount}}))
    assert "would violate inventory constraints." in refusal.message


def test_capacity_is_total_less_reserved_times_ratio() -> None:
    """The capacity can be used up to the last whole unit, and not beyond."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(10, reserved=3, allocation_ratio=1.5))
    with Refused(Code.CAPACITY_EXCEEDED) as refusal:
        claim(known, request(C1, {P1: {"VCPU": 11}}))
    assert "The requested amount would exceed the capacity." in refusal.message
    claim(known, request(C1, {P1: {"VCPU": 10}}))


def test_the_largest_ratio_has_room_for_all() -> None:
    """The largest ratio times the largest total is a finite capacity."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(MAX_INT, allocation_ratio=3.40282e38))
    claim(known, request(C1, {P1: {"VCPU": MAX_INT}}), request(C2, {P1: {"VCPU": MAX_INT}}))
    assert usage(known) == {"P1.VCPU": 2 * MAX_INT}


def test_consumers_of_one_request_count_together() -> None:
    """If two consumers fit alone but not together, neither gets anything."""
    known, fresh = catalog(), catalog()
    pair = [request(C1, {P1: {"VCPU": 5}}), request(C2, {P1: {"VCPU": 5}})]
    with Refused(Code.CAPACITY_EXCEEDED):
        claim(known, *pair)
    assert known == fresh
    claim(known, request(C1, {P1: {"VCPU": 5}}), request(C2, {P1: {"VCPU": 3}}))
    assert usage(known) == {"P1.VCPU": 8}
    assert known.providers[P1].generation == 1


def test_one_consumer_may_take_what_another_releases() -> None:
    """Allocations can move between consumers in one request without free capacity."""
    known = catalog()
    add_consumer(known, C1, {P1: {"VCPU": 8}})
    claim(known, request(C1, {}, 1), request(C2, {P1: {"VCPU": 8}}))
    assert usage(known) == {"P1.VCPU": 8}
    assert set(known.consumers) == {C2}


def over_capacity() -> Facts:
    """Return facts in which C1 uses 6 and C2 uses 4 of a provider that was reduced to 5."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(5))
    add_consumer(known, C1, {P1: {"VCPU": 6}})
    add_consumer(known, C2, {P1: {"VCPU": 4}})
    return known


def test_an_over_capacity_state_may_be_kept_or_lowered() -> None:
    """A consumer may keep or reduce its amount while the provider is over capacity."""
    known = over_capacity()
    claim(known, request(C1, {P1: {"VCPU": 6}}, 1))
    assert usage(known) == {"P1.VCPU": 10}
    claim(known, request(C1, {P1: {"VCPU": 5}}, 2))
    assert usage(known) == {"P1.VCPU": 9}


def test_an_over_capacity_state_may_not_be_raised() -> None:
    """While a provider is over capacity, neither old nor new consumers get one more unit."""
    known = over_capacity()
    with Refused(Code.CAPACITY_EXCEEDED):
        claim(known, request(C1, {P1: {"VCPU": 7}}, 1))
    with Refused(Code.CAPACITY_EXCEEDED):
        claim(known, request(C3, {P1: {"VCPU": 1}}))
    with Refused(Code.CAPACITY_EXCEEDED):
        claim(known, request(C1, {P1: {"VCPU": 5}}, 1), request(C3, {P1: {"VCPU": 2}}))


def test_an_over_capacity_state_may_change_hands() -> None:
    """A consumer may take what another releases in the same request: the sum does not rise."""
    known = over_capacity()
    claim(known, request(C1, {P1: {"VCPU": 5}}, 1), request(C3, {P1: {"VCPU": 1}}))
    assert usage(known) == {"P1.VCPU": 10}


def test_a_refused_claim_is_no_previous_usage() -> None:
    """A repeated request is refused again: a refused claim does not count as previous usage."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(1))
    add_consumer(known, C1, {P1: {"VCPU": 1}})
    for _ in range(3):
        with Refused(Code.CAPACITY_EXCEEDED):
            claim(known, request(C2, {P1: {"VCPU": 1}}))
    assert usage(known) == {"P1.VCPU": 1}


def test_unit_sizes_are_checked_without_a_rise() -> None:
    """An unchanged amount that the unit sizes no longer allow is refused."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8, max_unit=4))
    add_consumer(known, C1, {P1: {"VCPU": 6}})
    with Refused(Code.UNITS_VIOLATED):
        claim(known, request(C1, {P1: {"VCPU": 6}}, 1))


def test_the_order_of_errors() -> None:
    """Consumer generations are checked first, then unknown names, then capacity."""
    known = catalog()
    add_provider(known, P3)
    cases = [
        ({P1: {"VCPU": 99}, P2: {"MEMORY_MB": 1}}, Code.CAPACITY_EXCEEDED),
        ({P1: {"VCPU": 99}, P2: {"CUSTOM_NO": 1}}, Code.CLASS_UNKNOWN),
        ({P1: {"VCPU": 99}, C3: {"VCPU": 1}}, Code.PROVIDER_UNKNOWN),
    ]
    for wanted, code in cases:
        with Refused(code):
            claim(known, request(C1, wanted))  # type: ignore[arg-type]  # C3 is no provider on purpose
        with Refused(Code.CONSUMER_GENERATION):
            claim(known, request(C1, wanted, 7))  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({P1: {"VCPU": 9, "NOTHING": 1}}, Code.CAPACITY_EXCEEDED),
        ({P1: {"NOTHING": 1, "VCPU": 9}}, Code.INVENTORY_MISSING),
        ({P1: {"VCPU": 9}, P2: {"DISK_GB": MAX_INT + 1}}, Code.CAPACITY_EXCEEDED),
        ({P1: {"DISK_GB": MAX_INT + 1}, P2: {"VCPU": 9}}, Code.UNITS_VIOLATED),
        ({P1: {"VCPU": 9}, P3: {"VCPU": 1}}, Code.INVENTORY_MISSING),
        ({P1: {"VCPU": 9}, P3: {"DISK_GB": 1}}, Code.INVENTORY_MISSING),
    ],
)
def test_the_first_unavailable_amount_is_reported(
    wanted: dict[ProviderId, dict[str, int]], code: Code
) -> None:
    """As in the original, providers without any wanted class come first, then in claim order."""
    known = catalog()
    add_class(known, "NOTHING")
    add_provider(known, P3)
    with Refused(code):
        claim(known, request(C1, wanted))


def test_delete_releases_everything_and_keeps_generations() -> None:
    """Deletion removes the consumer and its usage, and keeps the providers' generations."""
    known = catalog()
    add_consumer(known, C1, {P1: {"VCPU": 2}, P2: {"DISK_GB": 7}})
    add_consumer(known, C2, {P1: {"VCPU": 1}})
    known.apply(allocations.delete_for(known, NOW, C1))
    assert usage(known) == {"P1.VCPU": 1}
    assert set(known.consumers) == {C2}
    assert [known.providers[uuid].generation for uuid in (P1, P2)] == [0, 0]


def test_delete_of_nothing_is_refused() -> None:
    """The allocations of a consumer without any cannot be deleted."""
    with Refused(Code.ALLOCATIONS_NOT_FOUND) as refusal:
        allocations.delete_for(catalog(), NOW, C1)
    assert f"No allocations for consumer '{C1}'" in refusal.message
