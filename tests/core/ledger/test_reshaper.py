"""A reshape replaces inventories and allocations together; only the final state is judged."""

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger import reshaper
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory
from tests.core.ledger.build import (
    C1,
    C2,
    C3,
    NOW,
    P1,
    P2,
    P3,
    P4,
    Refused,
    add_consumer,
    add_provider,
    facts,
    request,
)

Offer = dict[ProviderId, tuple[int, dict[str, InventorySpec]]]


def host() -> Facts:
    """Return a root with 8 VCPU, of which C1 uses 4 and C2 uses 2, and an empty child."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8), DISK_GB=Inventory(100))
    add_provider(known, P2, parent=P1)
    add_consumer(known, C1, {P1: {"VCPU": 4, "DISK_GB": 10}})
    add_consumer(known, C2, {P1: {"VCPU": 2}})
    return known


def run(known: Facts, offer: Offer, *requests: ConsumerRequest) -> None:
    """Decide the reshape and apply the changes to the facts."""
    known.apply(reshaper.reshape(known, NOW, offer, list(requests)))


def offer_of_moved_class() -> Offer:
    """Return the offer that moves VCPU from the root to the child."""
    return {
        P1: (0, {"DISK_GB": InventorySpec(100)}),
        P2: (0, {"VCPU": InventorySpec(8)}),
    }


def test_a_class_moves_with_its_allocations() -> None:
    """A class moves with its allocations, which no order of single requests would allow."""
    known = host()
    run(
        known,
        offer_of_moved_class(),
        request(C1, {P1: {"DISK_GB": 10}, P2: {"VCPU": 4}}, 1),
        request(C2, {P2: {"VCPU": 2}}, 1),
    )
    assert set(known.inventories_of(P1)) == {"DISK_GB"}
    assert known.inventories_of(P1)["DISK_GB"].used == 10
    assert known.inventories_of(P2)["VCPU"].used == 6
    assert [known.consumers[uuid].generation for uuid in (C1, C2)] == [2, 2]


def test_generations_of_everything_named_rise() -> None:
    """The generations of providers in inventories or allocations rise, and of no others."""
    known = host()
    add_provider(known, P3, VCPU=Inventory(4))
    add_provider(known, P4)
    run(known, {P2: (0, {})}, request(C3, {P3: {"VCPU": 1}}))
    assert [known.providers[uuid].generation for uuid in (P1, P2, P3, P4)] == [0, 1, 1, 0]


def test_a_generation_rises_with_every_step_of_the_reshape() -> None:
    """As in the original, interim inventories, allocations and final inventories each raise it."""
    known = host()
    add_provider(known, P3, VCPU=Inventory(4))
    offer: Offer = {P2: (0, {"VCPU": InventorySpec(8)}), P3: (0, {"VCPU": InventorySpec(4)})}
    run(known, offer, request(C3, {P3: {"VCPU": 1}}))
    assert [known.providers[uuid].generation for uuid in (P1, P2, P3)] == [0, 2, 3]


def test_unnamed_consumers_and_providers_stay() -> None:
    """Unnamed consumers keep their allocations, and unnamed providers their inventories."""
    known = host()
    run(known, {P2: (0, {"VCPU": InventorySpec(1)})})
    assert known.inventories_of(P1)["VCPU"].used == 6
    assert set(known.consumers) == {C1, C2}


def test_an_unnamed_consumer_keeps_its_class_from_being_dropped() -> None:
    """A class cannot be dropped while an unnamed consumer, here C2, uses it."""
    known = host()
    with Refused(Code.INVENTORY_IN_USE) as refusal:
        run(known, offer_of_moved_class(), request(C1, {P1: {"DISK_GB": 10}, P2: {"VCPU": 4}}, 1))
    assert f"Inventory for 'VCPU' on resource provider '{P1}' in use." in refusal.message


def test_a_dropped_class_that_is_allocated_is_in_use() -> None:
    """A dropped class that the same request allocates is refused as in use, not as missing."""
    known, fresh = host(), host()
    offer: Offer = {P1: (0, {"DISK_GB": InventorySpec(100)})}
    with Refused(Code.INVENTORY_IN_USE):
        run(known, offer, request(C1, {P1: {"VCPU": 2}}, 1), request(C2, {}, 1))
    with Refused(Code.INVENTORY_IN_USE):
        run(known, offer, request(C1, {}, 1), request(C2, {P1: {"VCPU": 2}}, 1))
    with Refused(Code.CAPACITY_EXCEEDED):
        run(known, offer, request(C1, {}, 1), request(C2, {P1: {"VCPU": 9}}, 1))
    assert known == fresh
    run(known, offer, request(C1, {P1: {"DISK_GB": 10}}, 1), request(C2, {}, 1))
    assert set(known.inventories_of(P1)) == {"DISK_GB"}


def test_a_total_may_fall_below_the_usage() -> None:
    """As in a plain write of inventories, a total may be smaller than its usage."""
    known = host()
    run(known, {P1: (0, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(1)})})
    held = known.inventories_of(P1)["VCPU"]
    assert (held.total, held.used) == (1, 6)


def test_an_empty_request_deletes_a_consumer() -> None:
    """A consumer without allocations in the request is deleted, so its class can be dropped."""
    known = host()
    run(
        known,
        {P1: (0, {"DISK_GB": InventorySpec(5)})},
        request(C1, {}, 1),
        request(C2, {}, 1),
    )
    assert known.consumers == {}
    assert known.inventories_of(P1)["DISK_GB"].used == 0


def test_capacity_is_that_of_the_final_state() -> None:
    """Allocations must fit the new inventories, not the old ones."""
    known, fresh = host(), host()
    offer = {P2: (0, {"VCPU": InventorySpec(3)})}
    with Refused(Code.CAPACITY_EXCEEDED):
        run(known, offer, request(C1, {P1: {"DISK_GB": 10}, P2: {"VCPU": 4}}, 1))
    with Refused(Code.UNITS_VIOLATED):
        run(
            known,
            {P2: (0, {"VCPU": InventorySpec(8, max_unit=2)})},
            request(C1, {P2: {"VCPU": 4}}, 1),
        )
    with Refused(Code.INVENTORY_MISSING):
        run(known, {P2: (0, {})}, request(C1, {P2: {"VCPU": 4}}, 1))
    assert known == fresh


def test_the_order_of_refusals() -> None:
    """Providers are checked in body order, then consumers, allocations' providers and classes."""
    known = host()
    bad_class = {"CUSTOM_NO": InventorySpec(1)}
    stale, unknown = request(C1, {P4: {"VCPU": 1}}, 9), request(C1, {P4: {"VCPU": 1}}, 1)
    with Refused(Code.PROVIDER_NOT_FOUND) as refusal:
        run(known, {P3: (0, bad_class), P1: (7, {})}, stale)
    assert P3 in refusal.message
    with Refused(Code.PROVIDER_GENERATION):
        run(known, {P1: (7, {}), P3: (0, bad_class)}, stale)
    with Refused(Code.CONSUMER_GENERATION):
        run(known, {P1: (0, bad_class)}, stale)
    with Refused(Code.PROVIDER_UNKNOWN):
        run(known, {P1: (0, bad_class)}, unknown)
    with Refused(Code.CLASS_UNKNOWN):
        run(known, {P1: (0, bad_class)}, request(C1, {P1: {"VCPU": 99}}, 1))
    with Refused(Code.CLASS_UNKNOWN):
        run(known, {P2: (0, {})}, request(C1, {P1: {"CUSTOM_NO": 99}}, 1))
    with Refused(Code.CAPACITY_EXCEEDED):
        run(known, {P1: (0, {"VCPU": InventorySpec(8)})}, request(C2, {P1: {"VCPU": 5}}, 1))
    with Refused(Code.INVENTORY_IN_USE):
        run(known, {P1: (0, {"VCPU": InventorySpec(8)})}, request(C2, {P1: {"VCPU": 4}}, 1))


def test_a_refused_reshape_makes_no_consumer() -> None:
    """After a refusal no consumer exists, so the corrected reshape expects generation null."""
    known, fresh = host(), host()
    offer: Offer = {P2: (0, {"VCPU": InventorySpec(8)})}
    with Refused(Code.PROVIDER_UNKNOWN):
        run(known, offer, request(C3, {P2: {"VCPU": 1}, P4: {"VCPU": 1}}))
    assert known == fresh
    run(known, offer, request(C3, {P2: {"VCPU": 1}}))
    assert known.consumers[C3].generation == 1


def test_an_over_capacity_state_may_be_kept_by_a_reshape() -> None:
    """Allocations above the new total may be kept, but not raised."""
    known = host()
    offer: Offer = {P1: (0, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(100)})}
    run(known, offer, request(C1, {P1: {"VCPU": 4, "DISK_GB": 10}}, 1))
    assert known.inventories_of(P1)["VCPU"].used == 6
    offer = {P1: (3, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(100)})}
    with Refused(Code.CAPACITY_EXCEEDED):
        run(known, offer, request(C1, {P1: {"VCPU": 5}}, 2))
