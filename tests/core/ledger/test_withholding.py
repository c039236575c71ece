"""Closed trees: what is in them, what is created or moved there, and how they open again."""

from msgspec.structs import replace

from moorage.core.errors import Code
from moorage.core.ids import ProviderId
from moorage.core.ledger import allocations, capacity, inventory, providers, reshaper, withholding
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory, Withheld
from tests.core.ledger.build import (
    C1,
    C2,
    NOW,
    P1,
    P2,
    P3,
    P4,
    THEN,
    Refused,
    add_consumer,
    add_provider,
    facts,
    provider_id,
    request,
)

P5 = provider_id(5)


def tree() -> Facts:
    """Return root P1 with child P2 and grandchild P3, with 8 VCPU each, and another root P4."""
    known = facts()
    for uuid, parent in ((P1, None), (P2, P1), (P3, P2), (P4, None)):
        add_provider(known, uuid, parent=parent, VCPU=Inventory(8))
    return known


def close(known: Facts, uuid: ProviderId, reason: str = "no_provision") -> Changes:
    """Withhold a provider and all below it."""
    subtree = providers.subtree_of(known, known.providers[uuid])
    changes = withholding.withhold(known, subtree, reason)
    known.apply(changes)
    return changes


def reopen(known: Facts, uuid: ProviderId) -> Changes:
    """Open a provider and all below it."""
    changes = withholding.open_again(known, providers.subtree_of(known, known.providers[uuid]))
    known.apply(changes)
    return changes


def move(known: Facts, uuid: ProviderId, parent: ProviderId | None) -> None:
    """Move a provider and all below it."""
    name = known.providers[uuid].name
    known.apply(providers.update(known, NOW, uuid, name, True, parent, True)[0])


def create(known: Facts, uuid: ProviderId, parent: ProviderId) -> None:
    """Create a provider with 8 VCPU."""
    known.apply(providers.create(known, NOW, uuid, f"new-{uuid[:8]}", parent)[0])
    known.apply(inventory.create(known, NOW, uuid, "VCPU", InventorySpec(8), True)[0])


def closed(known: Facts) -> dict[ProviderId, tuple[str, ProviderId]]:
    """Return the reason and origin of all withheld providers; capacities agree with them."""
    found = {}
    for uuid, one in known.providers.items():
        units = {capacity.shown_capacity(held) for held in known.inventories_of(uuid).values()}
        assert units == ({8} if one.withheld is None else {0})
        if one.withheld is not None:
            found[uuid] = (one.withheld.reason, one.withheld.by)
    return found


def test_a_closed_tree_offers_nothing() -> None:
    """All below the provider are withheld for its reason, and nothing else."""
    known = tree()
    close(known, P2)
    assert closed(known) == {P2: ("no_provision", P2), P3: ("no_provision", P2)}
    with Refused(Code.CAPACITY_EXCEEDED):
        allocations.replace_for(known, NOW, [request(C1, {P3: {"VCPU": 1}})])
    assert allocations.replace_for(known, NOW, [request(C1, {P1: {"VCPU": 1}})])


def test_opening_restores_everything() -> None:
    """After closing and opening, every row is as before."""
    known = tree()
    before = dict(known.providers), {uuid: dict(x) for uuid, x in known.inventories.items()}
    close(known, P1)
    assert len(closed(known)) == 3
    reopen(known, P1)
    assert (known.providers, known.inventories) == before
    assert not reopen(known, P1)


def test_closing_changes_neither_generations_nor_times() -> None:
    """Clients of the Placement API see no conflict because a machine is drained."""
    known = tree()
    changes = close(known, P1)
    for one in changes.providers.values():
        assert one is not None
        assert (one.generation, one.updated_at) == (0, THEN)
    for held in changes.inventories.values():
        assert held == replace(Inventory(8), withheld=True)
    assert not close(known, P1)


def test_another_reason_replaces_the_first() -> None:
    """A drained machine that is expunged shows that it is expunged."""
    known = tree()
    close(known, P1)
    changes = close(known, P1, "expunged")
    assert set(closed(known).values()) == {("expunged", P1)}
    assert not changes.inventories


def test_new_children_inherit() -> None:
    """What is created in a closed tree is closed, with its inventories, and opens with it."""
    known = tree()
    close(known, P1)
    create(known, P5, P3)
    assert closed(known)[P5] == ("no_provision", P1)
    reopen(known, P1)
    assert closed(known) == {}


def test_what_moves_into_a_closed_tree_is_closed() -> None:
    """A subtree inherits from its new parent, and is open again when it leaves."""
    known = tree()
    close(known, P4)
    move(known, P2, P4)
    assert closed(known) == dict.fromkeys((P2, P3, P4), ("no_provision", P4))
    move(known, P2, P1)
    assert closed(known) == {P4: ("no_provision", P4)}
    move(known, P2, P4)
    move(known, P2, None)
    assert closed(known) == {P4: ("no_provision", P4)}


def test_what_moves_keeps_its_own_closure() -> None:
    """A closed part of a tree stays closed wherever it moves, and does not close others."""
    known = tree()
    close(known, P2, "expunged")
    move(known, P2, P4)
    assert closed(known) == {P2: ("expunged", P2), P3: ("expunged", P2)}
    close(known, P1)
    move(known, P2, P1)
    assert closed(known)[P3] == ("expunged", P2)


def test_nested_closures_end_one_by_one() -> None:
    """An inner closure survives that of its tree, and the outer one returns when it ends."""
    for first, second in ((P1, P2), (P2, P1)):
        known = tree()
        close(known, first, f"by {first}")
        close(known, second, f"by {second}")
        outer, inner = (f"by {P1}", P1), (f"by {P2}", P2)
        assert closed(known) == {P1: outer, P2: inner, P3: inner}
        reopen(known, P1)
        assert closed(known) == {P2: inner, P3: inner}
        close(known, P1, f"by {P1}")
        reopen(known, P2)
        assert closed(known) == {P1: outer, P2: outer, P3: outer}
        reopen(known, P1)
        assert closed(known) == {}


def test_a_closure_in_the_middle_of_what_moves() -> None:
    """Of a moved subtree, only what is not closed by itself inherits."""
    known = tree()
    close(known, P3, "late")
    close(known, P4)
    move(known, P2, P4)
    assert closed(known)[P2] == ("no_provision", P4)
    assert closed(known)[P3] == ("late", P3)
    move(known, P2, P1)
    assert closed(known) == {P3: ("late", P3), P4: ("no_provision", P4)}


def test_claims_that_do_not_raise_pass() -> None:
    """In a closed tree consumers may shrink, swap and leave, but none may grow."""
    known = tree()
    add_consumer(known, C1, {P2: {"VCPU": 4}})
    close(known, P1)
    with Refused(Code.CAPACITY_EXCEEDED):
        allocations.replace_for(known, NOW, [request(C1, {P2: {"VCPU": 5}}, 1)])
    swap = [request(C1, {}, 1), request(C2, {P2: {"VCPU": 4}})]
    known.apply(allocations.replace_for(known, NOW, swap))
    assert (set(known.consumers), known.inventories_of(P2)["VCPU"].used) == ({C2}, 4)
    known.apply(allocations.replace_for(known, NOW, [request(C2, {P2: {"VCPU": 3}}, 1)]))
    known.apply(allocations.delete_for(known, NOW, C2))
    assert known.inventories_of(P2)["VCPU"].used == 0


def test_a_reshape_records_what_exists() -> None:
    """A reshape in a closed tree is accepted up to the total, and stays closed."""
    known = tree()
    add_consumer(known, C1, {P1: {"VCPU": 4}})
    close(known, P1)
    moved = {P1: (0, {"DISK_GB": InventorySpec(9)}), P2: (0, {"VCPU": InventorySpec(8)})}
    wanted = [request(C1, {P2: {"VCPU": 4}}, 1), request(C2, {P2: {"VCPU": 4}})]
    changes = reshaper.reshape(known, NOW, moved, wanted)
    known.apply(changes)
    held = known.inventories_of(P2)["VCPU"]
    assert (held.used, held.withheld, known.inventories_of(P1)["DISK_GB"].withheld) == (
        8,
        True,
        True,
    )
    with Refused(Code.CAPACITY_EXCEEDED):
        reshaper.reshape(known, NOW, {}, [request(C2, {P2: {"VCPU": 5}}, 1)])


def test_a_replaced_inventory_stays_closed() -> None:
    """A client that writes the inventories of a closed provider does not open it."""
    known = tree()
    close(known, P1)
    known.apply(
        inventory.replace_all(known, NOW, P2, 0, {"VCPU": InventorySpec(8)}, full_reserve=True)[0]
    )
    assert P2 in closed(known)
    assert known.providers[P2].withheld == Withheld("no_provision", P1)
