"""Reports: created, updated, removed, ghosts; whose traits; beside nova."""

from typing import Any

from msgspec.structs import replace

from moorage.core.errors import Code
from moorage.core.ids import AgentId
from moorage.core.ledger import reported, traits_aggregates
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory, Reported
from moorage.core.ledger.reported import OWNER_NOVA, Mode, Node, NodeAnswer, ReportOutcome
from tests.core.ledger.build import (
    C1,
    NOW,
    P1,
    P2,
    TRAITS,
    add_consumer,
    add_provider,
    add_tags,
    aggregate_id,
    facts,
)

SSD, AVX = "STORAGE_DISK_SSD", "HW_CPU_X86_AVX2"


def known() -> Facts:
    """Return an empty ledger that knows nova's trait."""
    return replace_traits(facts())


def replace_traits(empty: Facts) -> Facts:
    """Return the facts with nova's trait among the standard ones."""
    empty.standard_traits = TRAITS | {OWNER_NOVA}
    return empty


def node(**values: Any) -> Node:
    """Return a node with four VCPU and the trait `SSD`, unless `values` say otherwise."""
    whole: dict[str, Any] = {
        "name": "node-1",
        "inventories": {"VCPU": InventorySpec(4)},
        "traits": frozenset({SSD}),
        "aggregates": frozenset({aggregate_id(1)}),
    }
    return Node(P1, **{**whole, **values})


def absent() -> Node:
    """Return the same node, which is gone."""
    return Node(P1, absent=True)


def report(on: Facts, one: Node, group: str = "g", mode: Mode = Mode.OWNER) -> NodeAnswer:
    """Apply a report; the same again must then be unchanged, also for the index."""
    _, answer = reported.apply(on, NOW, group, mode, one)
    if answer.refusal is None:
        provider = on.providers.get(one.uuid)
        held, tags = on.inventories_of(one.uuid), on.tags_of(one.uuid)
        assert reported.is_met(one, group, mode, provider, held, tags)
        changes, again = reported.apply(on, NOW, group, mode, one)
        assert not changes
        assert again == replace(answer, outcome=ReportOutcome.UNCHANGED)
    return answer


def code(answer: NodeAnswer) -> Code | None:
    """Return the code of a refusal."""
    return None if answer.refusal is None else answer.refusal.code


def place(on: Facts, uuid: Any = C1) -> None:
    """Allocate one VCPU on the node."""
    add_consumer(on, uuid, {P1: {"VCPU": 1}})


def test_a_node_is_created_updated_and_removed() -> None:
    """Custom classes and traits are created with it; the generation rises with changes only."""
    on = known()
    wanted = {"VCPU": InventorySpec(4), "CUSTOM_GOLD": InventorySpec(1)}
    made = report(on, node(inventories=wanted, traits=frozenset({SSD, "CUSTOM_T"})))
    assert (made.outcome, made.generation) == (ReportOutcome.CREATED, 3)
    assert on.tags_of(P1).reported == (Reported("g", frozenset({SSD, "CUSTOM_T"}), owned=True),)
    changed = report(on, node(traits=None, aggregates=None))
    assert (changed.outcome, changed.generation) == (ReportOutcome.UPDATED, 4)
    assert on.inventories_of(P1).keys() == {"VCPU"}
    assert report(on, node(name="other", traits=None)).outcome is ReportOutcome.UPDATED
    gone = report(on, absent())
    assert (gone.outcome, gone.generation) == (ReportOutcome.REMOVED, None)
    assert (on.providers, on.inventories_of(P1), on.tags_of(P1).reported) == ({}, {}, ())


def test_refused_nodes_change_nothing() -> None:
    """A class in use, a name that is taken, invalid figures, a new node without a name."""
    on = known()
    assert code(report(on, node(name=None))) is Code.INVALID
    assert on.providers == {}
    report(on, node())
    add_provider(on, P2, name="taken")
    place(on)
    before = (on.providers[P1], dict(on.inventories_of(P1)), on.tags_of(P1))
    for refused, expected in (
        (node(inventories={}), Code.INVENTORY_IN_USE),
        (node(name="taken"), Code.DUPLICATE_PROVIDER),
        (node(inventories={"VCPU": InventorySpec(0)}), Code.INVALID),
        (node(traits=frozenset({"NOT_A_TRAIT"})), Code.TRAIT_UNKNOWN),
    ):
        answer = report(on, refused)
        assert (answer.outcome, answer.generation) == (ReportOutcome.REFUSED, before[0].generation)
        assert code(answer) in {expected, Code.INVALID}
        assert (on.providers[P1], on.inventories_of(P1), on.tags_of(P1)) == before


def test_ghosts() -> None:
    """With allocations it stays and offers nothing; later it is removed, or it returns."""
    on = known()
    report(on, node())
    place(on)
    on.inventories[P1]["CUSTOM_UNLOADED"] = Inventory(1)
    ghost = report(on, absent())
    del on.inventories[P1]["CUSTOM_UNLOADED"]
    assert (ghost.outcome, ghost.ghost) == (ReportOutcome.UPDATED, True)
    held = on.inventories_of(P1)["VCPU"]
    assert (held.reserved, held.total, held.used) == (4, 4, 1)
    assert on.tags_of(P1).reported == (Reported("g", frozenset({SSD}), ghost=True, owned=True),)
    back = report(on, node())
    assert (back.outcome, back.ghost) == (ReportOutcome.UPDATED, False)
    assert on.inventories_of(P1)["VCPU"].reserved == 0
    report(on, absent())
    on.inventories[P1]["VCPU"] = replace(on.inventories[P1]["VCPU"], used=0)
    assert report(on, absent()).outcome is ReportOutcome.REMOVED
    assert report(on, absent()) == NodeAnswer(P1, ReportOutcome.UNCHANGED)


def test_a_ghost_that_somebody_opens_is_closed_again() -> None:
    """Each report is compared with the ledger."""
    on = known()
    report(on, node())
    place(on)
    report(on, absent())
    on.inventories[P1]["VCPU"] = replace(on.inventories[P1]["VCPU"], reserved=0)
    assert report(on, absent()).outcome is ReportOutcome.UPDATED
    assert on.inventories_of(P1)["VCPU"].reserved == 4


def test_a_gone_node_with_children_stays() -> None:
    """Its children would have no parent."""
    on = known()
    report(on, node())
    add_provider(on, P2, parent=P1)
    assert code(report(on, absent())) is Code.PROVIDER_HAS_CHILDREN


def put(on: Facts, *traits: str) -> None:
    """Replace all traits, as the Placement API does."""
    generation = on.providers[P1].generation
    on.apply(traits_aggregates.replace_traits(on, NOW, P1, generation, frozenset(traits))[0])


def test_a_report_replaces_its_own_traits_only() -> None:
    """What others have set stays, also if a report has named it meanwhile."""
    on = known()
    report(on, node())
    put(on, SSD, AVX)
    assert report(on, node(traits=frozenset({AVX}))).outcome is ReportOutcome.UPDATED
    assert on.tags_of(P1).traits == {AVX}
    assert on.tags_of(P1).reported == (Reported("g", owned=True),)
    assert report(on, node(traits=frozenset())).outcome is ReportOutcome.UNCHANGED
    assert on.tags_of(P1).traits == {AVX}


def test_what_placement_removes_belongs_to_nobody() -> None:
    """If it sets the trait again, it is its own, and no report removes it."""
    on = known()
    report(on, node())
    put(on, AVX)
    assert on.tags_of(P1).reported == (Reported("g", owned=True),)
    put(on, AVX, SSD)
    assert report(on, node(traits=frozenset())).outcome is ReportOutcome.UNCHANGED
    assert on.tags_of(P1).traits == {AVX, SSD}
    put(on, AVX)
    assert report(on, node()).outcome is ReportOutcome.UPDATED
    assert report(on, node(traits=frozenset())).outcome is ReportOutcome.UPDATED
    assert on.tags_of(P1).traits == {AVX}


def test_two_groups_share_a_trait() -> None:
    """It stays until the last of them stops to report it; the generation does not rise."""
    on = known()
    report(on, node())
    generation = on.providers[P1].generation
    shared = report(on, node(), "h")
    assert (shared.outcome, shared.generation) == (ReportOutcome.UPDATED, generation)
    report(on, node(traits=frozenset()))
    assert on.tags_of(P1).traits == {SSD}
    report(on, node(traits=frozenset()), "h")
    both = (Reported("g", owned=True), Reported("h", owned=True))
    assert (on.tags_of(P1).traits, on.tags_of(P1).reported) == (frozenset(), both)


def test_only_an_owner_says_that_a_node_is_gone() -> None:
    """The source of another group never had it; a provider that no group owns is removed."""
    on = known()
    add_provider(on, P1)
    assert report(on, absent(), "h").outcome is ReportOutcome.REMOVED
    report(on, node())
    generation = on.providers[P1].generation
    refused = report(on, absent(), "h")
    assert (code(refused), refused.generation) == (Code.NOT_OWNER, generation)
    place(on)
    assert code(report(on, absent(), "h")) is Code.NOT_OWNER
    assert on.inventories_of(P1)["VCPU"].reserved == 0
    report(on, node(), "h")
    assert report(on, absent(), "h").ghost


def test_what_an_agent_manages_is_refused() -> None:
    """Renamed, changed, absent, beside nova, and also if nothing differs: it stays as it is."""
    on = known()
    report(on, node())
    agent = AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee")
    on.providers[P1] = replace(on.providers[P1], agent=agent)
    before = (on.providers[P1], dict(on.inventories_of(P1)), on.tags_of(P1))
    changed = node(inventories={"VCPU": InventorySpec(4, reserved=4)})
    for mode in Mode:
        for one in (node(), node(name="other"), changed, node(inventories={}), absent()):
            answer = report(on, one, mode=mode)
            assert code(answer) is Code.CLASS_MANAGED
            assert answer.generation == before[0].generation
            assert not reported.is_met(one, "g", mode, *before)
            assert (on.providers[P1], on.inventories_of(P1), on.tags_of(P1)) == before


def test_a_report_never_makes_a_provider_novas() -> None:
    """The trait would force the mode beside nova for ever, so a report with it is refused."""
    on = known()
    marked = node(traits=frozenset({SSD, OWNER_NOVA}))
    assert code(report(on, marked)) is Code.INVALID
    assert on.providers == {}
    report(on, node())
    for mode in Mode:
        answer = report(on, marked, mode=mode)
        assert code(answer) is Code.INVALID
        assert "leave it out" in str(answer.refusal)
    assert on.tags_of(P1).traits == {SSD}


def nova() -> Facts:
    """Return a ledger with a provider that nova writes."""
    on = known()
    offer = Inventory(8, max_unit=1, allocation_ratio=2.0)
    add_provider(on, P1, VCPU=offer, DISK_GB=Inventory(9))
    add_tags(on, P1, {OWNER_NOVA})
    return on


def test_beside_nova() -> None:
    """Only `reserved` and `total` of reported classes that exist are written."""
    on = nova()
    gold = InventorySpec(1)
    one = node(inventories={"VCPU": InventorySpec(8, reserved=8), "CUSTOM_GOLD": gold})
    answer = report(on, one)  # the mode of the report is that of an owner
    assert answer.outcome is ReportOutcome.UPDATED
    held = on.inventories_of(P1)
    assert held.keys() == {"VCPU", "DISK_GB"}
    vcpu = held["VCPU"]
    assert (vcpu.total, vcpu.reserved, vcpu.max_unit, vcpu.allocation_ratio) == (8, 8, 1, 2.0)
    assert held["DISK_GB"] == Inventory(9)
    assert on.tags_of(P1).traits == {OWNER_NOVA}
    assert on.tags_of(P1).aggregates == frozenset()
    assert on.providers[P1].name == f"name-{P1[:8]}"


def test_beside_nova_nothing_is_created_or_removed() -> None:
    """An unknown node is left to nova; one that is gone only offers nothing more."""
    on = known()
    assert report(on, node(), mode=Mode.BESIDE_NOVA) == NodeAnswer(P1, ReportOutcome.UNCHANGED)
    on = nova()
    gone = report(on, absent())
    assert (gone.outcome, gone.ghost) == (ReportOutcome.UPDATED, True)
    assert {one.reserved for one in on.inventories_of(P1).values()} == {8, 9}
    back = report(on, node(inventories={"VCPU": InventorySpec(8)}))
    assert (back.outcome, back.ghost) == (ReportOutcome.UPDATED, False)
