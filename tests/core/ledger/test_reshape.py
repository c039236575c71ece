"""The reshape: inventories and allocations move together, judged by the final state alone."""

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger import reshape
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
    """Return a root with 8 VCPU, of which C1 holds 4 and C2 holds 2, and an empty child."""
    known = facts()
    add_provider(known, P1, VCPU=Inventory(8), DISK_GB=Inventory(100))
    add_provider(known, P2, parent=P1)
    add_consumer(known, C1, {P1: {"VCPU": 4, "DISK_GB": 10}})
    add_consumer(known, C2, {P1: {"VCPU": 2}})
    return known


def run(known: Facts, offer: Offer, *requests: ConsumerRequest) -> None:
    """Decide the reshape and let the facts follow."""
    known.apply(reshape.reshape(known, NOW, offer, list(requests)))


def moved() -> Offer:
    """Return the offer that moves VCPU from the root to the child."""
    return {
        P1: (0, {"DISK_GB": InventorySpec(100)}),
        P2: (0, {"VCPU": InventorySpec(8)}),
    }


def test_a_class_moves_with_its_allocations() -> None:
    """In no order of single steps would this be legal; together it is."""
    known = host()
    run(
        known,
        moved(),
        request(C1, {P1: {"DISK_GB": 10}, P2: {"VCPU": 4}}, 1),
        request(C2, {P2: {"VCPU": 2}}, 1),
    )
    assert set(known.inventories_of(P1)) == {"DISK_GB"}
    assert known.inventories_of(P1)["DISK_GB"].used == 10
    assert known.inventories_of(P2)["VCPU"].used == 6
    assert [known.consumers[uuid].generation for uuid in (C1, C2)] == [2, 2]


def test_generations_of_everything_named_rise() -> None:
    """Providers in inventories and providers in allocations; others keep theirs."""
    known = host()
    add_provider(known, P3, VCPU=Inventory(4))
    add_provider(known, P4)
    run(known, {P2: (0, {})}, request(C3, {P3: {"VCPU": 1}}))
    assert [known.providers[uuid].generation for uuid in (P1, P2, P3, P4)] == [0, 1, 1, 0]


def test_a_generation_rises_with_every_step_of_the_reshape() -> None:
    """Both inventories side by side, the allocations, the new inventory: as clients know it."""
    known = host()
    add_provider(known, P3, VCPU=Inventory(4))
    offer: Offer = {P2: (0, {"VCPU": InventorySpec(8)}), P3: (0, {"VCPU": InventorySpec(4)})}
    run(known, offer, request(C3, {P3: {"VCPU": 1}}))
    assert [known.providers[uuid].generation for uuid in (P1, P2, P3)] == [0, 2, 3]


def test_what_is_not_listed_stays() -> None:
    """Unnamed consumers keep what they hold, unnamed providers what they offer."""
    known = host()
    run(known, {P2: (0, {"VCPU": InventorySpec(1)})})
    assert known.inventories_of(P1)["VCPU"].used == 6
    assert set(known.consumers) == {C1, C2}


def test_an_unnamed_consumer_keeps_its_class_from_being_dropped() -> None:
    """C2 was forgotten: the class it is on cannot go."""
    known = host()
    with Refused(Code.INVENTORY_IN_USE) as refusal:
        run(known, moved(), request(C1, {P1: {"DISK_GB": 10}, P2: {"VCPU": 4}}, 1))
    assert f"Inventory for 'VCPU' on resource provider '{P1}' in use." in refusal.message


def test_a_dropped_class_that_is_taken_in_the_same_request_is_in_use() -> None:
    """Who takes what goes is told that it is in use, not that it was never there."""
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


def test_a_total_may_fall_below_what_unnamed_consumers_use() -> None:
    """As with a plain inventory write, the host may have lost what is in use."""
    known = host()
    run(known, {P1: (0, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(1)})})
    held = known.inventories_of(P1)["VCPU"]
    assert (held.total, held.used) == (1, 6)


def test_an_empty_wish_wipes_a_named_consumer() -> None:
    """A consumer that gives everything back makes way for the class to go."""
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
    """What is taken must fit what will be offered, not what was or what both would be."""
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
    """Providers in body order, then consumers, then what allocations name, then classes."""
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
    """An unknown provider in allocations leaves nothing; the corrected reshape says null again."""
    known, fresh = host(), host()
    offer: Offer = {P2: (0, {"VCPU": InventorySpec(8)})}
    with Refused(Code.PROVIDER_UNKNOWN):
        run(known, offer, request(C3, {P2: {"VCPU": 1}, P4: {"VCPU": 1}}))
    assert known == fresh
    run(known, offer, request(C3, {P2: {"VCPU": 1}}))
    assert known.consumers[C3].generation == 1


def test_an_over_capacity_state_may_be_carried_along() -> None:
    """A shrunk class keeps who is on it, as long as nobody takes more."""
    known = host()
    offer: Offer = {P1: (0, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(100)})}
    run(known, offer, request(C1, {P1: {"VCPU": 4, "DISK_GB": 10}}, 1))
    assert known.inventories_of(P1)["VCPU"].used == 6
    offer = {P1: (3, {"VCPU": InventorySpec(1), "DISK_GB": InventorySpec(100)})}
    with Refused(Code.CAPACITY_EXCEEDED):
        run(known, offer, request(C1, {P1: {"VCPU": 5}}, 2))
