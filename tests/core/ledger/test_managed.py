"""Inventories that follow an agent: parts, totals and offers, without conflicts for others."""

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import (
    allocations,
    capacity,
    inventory,
    managed,
    reshaper,
    vocabulary,
    withholding,
)
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.managed import ClassOffer, MachineOffer, PartOffer
from moorage.core.ledger.model import Inventory
from moorage.core.limits import MAX_INT
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

AGENT = AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee")
OTHER = AgentId("00000002-eeee-4eee-8eee-eeeeeeeeeeee")
PAGES = "CUSTOM_HUGEPAGES_2MB"
LATER = Instant(NOW + 1_000_000)


def machine(
    desired: int = 10, offered: int = 6, withheld: str | None = None, **more: Any
) -> MachineOffer:
    """Return a machine with root P1 and part P2."""
    one = ClassOffer(desired, offered, **more)
    return MachineOffer(AGENT, P1, None, {P2: PartOffer("numa0", P1, {PAGES: one})}, withheld)


def follow(known: Facts, offer: MachineOffer, now: Instant = NOW) -> Changes:
    """Follow an agent, and apply the changes."""
    changes = managed.follow(known, now, offer)
    known.apply(changes)
    return changes


@pytest.fixture
def known() -> Facts:
    """Return the facts of a root, P1, that belongs to Nova."""
    made = facts()
    add_provider(made, P1, VCPU=Inventory(8))
    return made


def pages(known: Facts) -> Inventory:
    """Return the managed inventory."""
    return known.inventories_of(P2)[PAGES]


def test_the_first_offer_creates_what_is_missing(known: Facts) -> None:
    """Part, class and inventory are created; the root of others does not change."""
    changes = follow(known, machine(max_unit=4, step_size=2))
    part = known.providers[P2]
    named = f"{known.providers[P1].name}_numa0"
    assert (part.name, part.parent, part.root, part.agent) == (named, P1, P1, AGENT)
    assert PAGES in known.classes
    stored = pages(known)
    assert (stored.total, stored.offered, stored.max_unit, stored.step_size) == (10, 6, 4, 2)
    assert (stored.used, stored.reserved, stored.allocation_ratio) == (0, 0, 1.0)
    assert P1 not in changes.providers
    assert capacity.shown_capacity(stored) == 6


def test_an_equal_offer_changes_nothing(known: Facts) -> None:
    """To follow twice is to follow once."""
    follow(known, machine())
    assert not follow(known, machine(), LATER)


def test_an_offer_is_no_change_for_others(known: Facts) -> None:
    """Another offer changes neither a generation nor a time, of the provider or the inventory."""
    follow(known, machine(10, 10))
    provider, stored = known.providers[P2], pages(known)
    for offered in (0, 3, 10):
        changes = follow(known, machine(10, offered), LATER)
        assert not changes.providers
        assert pages(known) == replace(stored, offered=offered)
    changes = follow(known, machine(10, 10, "no_provision"), LATER)
    assert all(one is not None and one.generation <= 1 for one in changes.providers.values())
    assert replace(known.providers[P2], withheld=None) == provider
    assert replace(pages(known), withheld=False) == stored


def test_totals_follow_what_is_desired(known: Facts) -> None:
    """What Placement shows changes with a new generation and a new time."""
    follow(known, machine())
    before = known.providers[P2].generation
    for offer in (machine(12), machine(12, max_unit=3), machine(12, max_unit=3, step_size=3)):
        follow(known, offer, LATER)
        before += 1
        assert (known.providers[P2].generation, known.providers[P2].updated_at) == (before, LATER)
        assert pages(known).updated_at == LATER
    stored = pages(known)
    assert (stored.total, stored.max_unit, stored.step_size) == (12, 3, 3)
    follow(known, machine(12, resized=True), LATER)
    assert (pages(known).max_unit, pages(known).step_size) == (MAX_INT, 1)
    assert known.providers[P2].generation == before + 1


def test_unit_sizes_that_the_machine_does_not_demand_are_those_of_clients(known: Facts) -> None:
    """Without them in the offer, what a client has written stays, and nothing changes."""
    follow(known, machine())
    written = InventorySpec(10, max_unit=8, step_size=2)
    known.apply(inventory.update(known, LATER, P2, PAGES, 1, written, full_reserve=True)[0])
    before = known.providers[P2]
    follow(known, machine(offered=7), LATER)
    assert known.providers[P2] == before
    assert (pages(known).offered, pages(known).max_unit, pages(known).step_size) == (7, 8, 2)
    follow(known, machine(max_unit=4, step_size=4), LATER)
    assert (pages(known).max_unit, pages(known).step_size) == (4, 4)


def test_what_follows_a_write_of_a_client_does_not_raise_the_generation_again(known: Facts) -> None:
    """The client has got the generation of its write, also if the machine demands other sizes."""
    follow(known, machine(max_unit=4))
    written = InventorySpec(12, max_unit=8)
    known.apply(inventory.update(known, LATER, P2, PAGES, 1, written, full_reserve=True)[0])
    before = known.providers[P2]
    offer = ClassOffer(12, 12, max_unit=4)
    known.apply(managed.follow_class(known, LATER, P2, PAGES, offer))
    assert known.providers[P2] == before
    assert (pages(known).offered, pages(known).max_unit) == (12, 4)


def test_reserved_and_ratio_of_others_stay(known: Facts) -> None:
    """What a client of the Placement API adds to a managed inventory is kept."""
    follow(known, machine(10, 10))
    written = InventorySpec(10, reserved=2, allocation_ratio=2.0)
    made = inventory.update(known, LATER, P2, PAGES, 1, written, full_reserve=True)
    known.apply(made[0])
    assert pages(known).offered == 10
    follow(known, machine(10, 5), LATER)
    assert (pages(known).reserved, pages(known).allocation_ratio) == (2, 2.0)
    assert capacity.shown_capacity(pages(known)) == 6
    follow(known, machine(10, 1), LATER)
    assert capacity.shown_capacity(pages(known)) == 0


def test_nothing_desired_removes_an_unused_class(known: Facts) -> None:
    """The inventory goes, and comes back when something is desired again."""
    assert not follow(known, machine(0, 0)).inventories
    follow(known, machine())
    generation = known.providers[P2].generation
    follow(known, machine(0, 0))
    assert PAGES not in known.inventories_of(P2)
    assert known.providers[P2].generation == generation + 1
    follow(known, machine(5, 5))
    assert pages(known).total == 5


def test_nothing_desired_keeps_a_used_class(known: Facts) -> None:
    """Placement knows no total of 0: a used class keeps 1, offers nothing, and goes when unused."""
    follow(known, machine(10, 10))
    add_consumer(known, C1, {P2: {PAGES: 4}})
    follow(known, machine(0, 0))
    stored = pages(known)
    assert (stored.total, stored.used, capacity.shown_capacity(stored)) == (1, 4, 0)
    known.apply(allocations.delete_for(known, NOW, C1))
    follow(known, machine(0, 0))
    assert PAGES not in known.inventories_of(P2)


def test_a_class_that_a_client_has_deleted_stays_deleted(known: Facts) -> None:
    """A class that is no longer registered is created again only if it is desired."""
    follow(known, machine())
    follow(known, machine(0, 0, registered=False))
    known.apply(vocabulary.class_delete(known, PAGES))
    follow(known, machine(0, 0, registered=False), LATER)
    assert not known.has_class(PAGES)
    follow(known, machine(5, 0, registered=False), LATER)
    assert known.has_class(PAGES)
    assert (pages(known).total, pages(known).offered) == (5, 0)


def test_less_than_used_is_recorded(known: Facts) -> None:
    """A machine may lose what is used: nothing is evicted, nothing new fits, and it clears."""
    follow(known, machine(10, 10))
    add_consumer(known, C1, {P2: {PAGES: 4}})
    add_consumer(known, C2, {P2: {PAGES: 4}})
    consumers = dict(known.consumers)
    follow(known, machine(10, 5))
    assert (pages(known).used, known.consumers) == (8, consumers)
    with Refused(Code.CAPACITY_EXCEEDED):
        allocations.replace_for(known, NOW, [request(C3, {P2: {PAGES: 1}})])
    known.apply(allocations.delete_for(known, NOW, C2))
    assert allocations.replace_for(known, NOW, [request(C3, {P2: {PAGES: 1}})])


def test_a_write_that_does_not_raise_passes(known: Facts) -> None:
    """Consumers may shrink and swap on a machine that offers nothing, but not grow."""
    follow(known, machine(10, 10))
    add_consumer(known, C1, {P2: {PAGES: 4}})
    follow(known, machine(10, 0))
    swap = [request(C1, {}, 1), request(C2, {P2: {PAGES: 4}})]
    known.apply(allocations.replace_for(known, NOW, swap))
    assert pages(known).used == 4
    with Refused(Code.CAPACITY_EXCEEDED):
        allocations.replace_for(known, NOW, [request(C2, {P2: {PAGES: 5}}, 1)])
    known.apply(allocations.replace_for(known, NOW, [request(C2, {P2: {PAGES: 3}}, 1)]))
    assert pages(known).used == 3


def test_a_reshape_records_whatever_is_offered(known: Facts) -> None:
    """Nova reshapes when it starts, while the machine offers nothing: only the total counts."""
    follow(known, machine(10, 0, "preparing"))
    kept = {P2: (1, {PAGES: InventorySpec(10)})}
    known.apply(reshaper.reshape(known, NOW, kept, [request(C1, {P2: {PAGES: 9}})]))
    stored = pages(known)
    assert (stored.used, stored.offered, stored.withheld) == (9, 0, True)
    with Refused(Code.CAPACITY_EXCEEDED):
        reshaper.reshape(known, NOW, {}, [request(C2, {P2: {PAGES: 2}})])


def test_a_closed_machine_closes_its_whole_tree(known: Facts) -> None:
    """A reason closes the root and all below it; without one they open again."""
    add_provider(known, P3, parent=P1, VCPU=Inventory(4))
    follow(known, machine(withheld="no_provision"))
    assert all(known.providers[uuid].withheld is not None for uuid in (P1, P2, P3))
    assert capacity.shown_capacity(known.inventories_of(P3)["VCPU"]) == 0
    assert capacity.shown_capacity(pages(known)) == 0
    follow(known, machine())
    assert all(known.providers[uuid].withheld is None for uuid in (P1, P2, P3))
    assert capacity.shown_capacity(pages(known)) == 6


def test_parts_created_in_a_closed_machine_are_closed(known: Facts) -> None:
    """A part that appears while the machine is closed is closed with its first inventory."""
    follow(known, machine(withheld="expunged"))
    assert pages(known).withheld
    nested = PartOffer("numa0_gpu", P2, {PAGES: ClassOffer(3, 3)})
    offer = machine(withheld="expunged")
    follow(known, MachineOffer(AGENT, P1, None, {**offer.parts, P3: nested}, "expunged"))
    assert known.inventories_of(P3)[PAGES].withheld
    assert known.providers[P3].withheld == known.providers[P1].withheld


def test_a_new_class_of_a_closed_part_is_closed(known: Facts) -> None:
    """A part that is closed by itself stays so in an open machine, with all its classes."""
    follow(known, machine())
    known.apply(withholding.withhold(known, [known.providers[P2]], "repair"))
    both = {PAGES: ClassOffer(10, 6), "CUSTOM_HUGEPAGES_1GB": ClassOffer(2, 2)}
    follow(known, MachineOffer(AGENT, P1, None, {P2: PartOffer("numa0", P1, both)}, None))
    assert known.providers[P1].withheld is None
    assert all(held.withheld for held in known.inventories_of(P2).values())


def test_a_part_has_one_agent(known: Facts) -> None:
    """A provider that another agent manages is refused, and nothing changes."""
    follow(known, machine())
    before = dict(known.providers), known.inventories_of(P2).copy()
    other = MachineOffer(OTHER, P1, None, {P3: PartOffer("new", P1, {}), **machine().parts}, None)
    with Refused(Code.CLASS_MANAGED):
        managed.follow(known, NOW, other)
    assert (known.providers, known.inventories_of(P2)) == before


def test_an_existing_child_is_adopted(known: Facts) -> None:
    """A part that exists already without an agent is taken over, with what is used of it."""
    add_provider(known, P2, parent=P1, offer={PAGES: Inventory(20)})
    add_consumer(known, C1, {P2: {PAGES: 7}})
    follow(known, machine())
    assert known.providers[P2].agent == AGENT
    assert (pages(known).total, pages(known).used, pages(known).offered) == (10, 7, 6)


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({P2: PartOffer("numa0", P4, {})}, Code.PARENT_UNKNOWN),
        ({P2: PartOffer("taken", P1, {})}, Code.DUPLICATE_PROVIDER),
        ({P2: PartOffer("numa0", P1, {"PAGES": ClassOffer(1, 1)})}, Code.CLASS_UNKNOWN),
        ({}, Code.PROVIDER_NOT_FOUND),
    ],
)
def test_refused_machines(known: Facts, parts: dict[ProviderId, PartOffer], code: Code) -> None:
    """A machine that cannot be stored is refused, and the facts are as before."""
    root = P1 if parts else P4
    add_provider(known, P3, name="name-00000001_taken")
    before = dict(known.providers), dict(known.classes)
    with Refused(code):
        managed.follow(known, NOW, MachineOffer(AGENT, root, None, parts, None))
    assert (known.providers, known.classes) == before


def written(known: Facts, changes: Changes) -> dict[tuple[ProviderId, str], int]:
    """Return the totals that a decision has overwritten, and apply it."""
    known.apply(changes)
    return changes.overwritten


def test_totals_that_others_write_are_found(known: Facts) -> None:
    """Changed and deleted totals of managed providers are found, by agent."""
    follow(known, machine())
    made = inventory.update(known, NOW, P2, PAGES, 1, InventorySpec(7), full_reserve=True)
    assert written(known, made[0]) == {(P2, PAGES): 7}
    assert written(known, inventory.delete(known, NOW, P2, PAGES)) == {(P2, PAGES): 0}
    added = inventory.create(known, NOW, P2, "VCPU", InventorySpec(1), full_reserve=True)
    assert written(known, added[0]) == {(P2, "VCPU"): 1}


def test_other_writes_are_not_found(known: Facts) -> None:
    """Claims, other members of an inventory, and inventories without an agent do not matter."""
    follow(known, machine())
    claim = allocations.replace_for(known, NOW, [request(C1, {P2: {PAGES: 1}, P1: {"VCPU": 1}})])
    assert written(known, claim) == {}
    spec = InventorySpec(10, reserved=1)
    made = inventory.update(known, NOW, P2, PAGES, 2, spec, full_reserve=True)
    assert written(known, made[0]) == {}
    made = inventory.update(known, NOW, P1, "VCPU", 1, InventorySpec(9), full_reserve=True)
    assert written(known, made[0]) == {}
    assert written(known, allocations.delete_for(known, NOW, C1)) == {}


def test_a_machine_that_grows(known: Facts) -> None:
    """Parts may be added to a machine in any register, parents first."""
    follow(known, machine())
    second = PartOffer("numa1", P1, {PAGES: ClassOffer(4, 4)})
    changes = follow(known, MachineOffer(AGENT, P1, None, {**machine().parts, P3: second}, None))
    assert set(changes.providers) == {P3}
    assert known.inventories_of(P3)[PAGES].total == 4


def test_the_name_of_a_part() -> None:
    """It begins with the name of the root, and has at most 200 characters."""
    assert managed.part_name("host", "numa0") == "host_numa0"
    assert len(managed.part_name("h" * 194, "numa0")) == 200
    with Refused(Code.INVALID):
        managed.part_name("h" * 195, "numa0")


def test_a_root_that_the_agent_owns(known: Facts) -> None:
    """It is created with the name of the machine; a provider of somebody else is not taken over."""
    follow(known, MachineOffer(AGENT, P4, "host-4", {}, "preparing"))
    assert (known.providers[P4].name, known.providers[P4].agent) == ("host-4", AGENT)
    assert not follow(known, MachineOffer(AGENT, P4, "host-4", {}, "preparing"))
    with Refused(Code.ROOT_TAKEN):
        managed.follow(known, NOW, MachineOffer(AGENT, P1, "host-1", {}, None))
