"""An undo restores what was, and is refused where what the reshape wrote has changed again."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from moorage.core.ids import AgentId
from moorage.core.ledger import draining
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Inventory, Reported, Withheld
from moorage.core.ledger.reshaping import effects
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.plan import Figures, NewProvider, ReshapePlan
from moorage.core.ledger.reshaping.planning import plan_undo
from tests.core.ledger.build import (
    C1,
    C2,
    C3,
    NOW,
    add_provider,
    add_tags,
    add_trait,
    aggregate_id,
)
from tests.core.ledger.reshaping.worlds import (
    VF,
    VGPU,
    A,
    B,
    C,
    D,
    R,
    claim,
    codes,
    commit,
    hold,
    host,
    image,
    move,
    plan_back,
    planned,
    undo,
)

K1 = C1.replace("-", "_")


def world() -> Facts:
    """Return the node with a child A, which has a child B and tags, and consumers on both."""
    known = host()
    add_trait(known, "CUSTOM_GPU")
    add_provider(known, A, parent=R, offer={VGPU: Inventory(8)})
    add_provider(known, B, parent=A, offer={VF: Inventory(4)})
    add_tags(known, B, {"CUSTOM_GPU", "STORAGE_DISK_SSD"}, {aggregate_id(1)})
    claim(known, C1, {R: {VGPU: 4, "VCPU": 2}})
    claim(known, C2, {B: {VF: 1}})
    hold(known)
    return known


def everything() -> ReshapePlan:
    """Return a plan with an effect of every kind."""
    return ReshapePlan(
        create=(NewProvider(C, "gpu-3", R),),
        rename={R: "compute-9"},
        parents={A: C},
        moves=(move((R, VGPU), (C, VGPU), 12, **{K1: {C: 4}}),),
        inventories={A: {VGPU: Figures(max_unit=2)}},
        traits={C: frozenset({"CUSTOM_GPU"}), A: frozenset({"STORAGE_DISK_SSD"})},
        aggregates={C: frozenset({aggregate_id(2)})},
        drain={A: "broken fan"},
        delete=frozenset({B}),
        release=frozenset({C2}),
    )


def figures(known: Facts, uuid: Any, name: str, **changed: Any) -> None:
    """Change an inventory, as a client does."""
    after = replace(known.inventories[uuid][name], **changed)
    known.apply(Changes(inventories={(uuid, name): after}))


def provider(known: Facts, uuid: Any, **changed: Any) -> None:
    """Change a provider, as a client does."""
    known.apply(Changes(providers={uuid: replace(known.providers[uuid], **changed)}))


def gone(known: Facts, uuid: Any) -> None:
    """Delete a provider with all that it has."""
    known.inventories.pop(uuid, None)
    known.apply(Changes(providers={uuid: None}))


SINCE: dict[str, tuple[Callable[[Facts], Any], list[tuple[Any, ...]]]] = {
    "figures": (lambda known: figures(known, C, VGPU, total=13), [(C, VGPU, None)]),
    "the figures of the source": (
        lambda known: figures(known, R, VGPU, reserved=1),
        [(R, VGPU, None)],
    ),
    "a name": (lambda known: provider(known, R, name="other"), [(R, None, None)]),
    "the name of what it created": (
        lambda known: provider(known, C, name="other"),
        [(C, None, None)],
    ),
    "a parent": (lambda known: provider(known, A, parent=R), [(A, None, None)]),
    "traits": (lambda known: add_tags(known, A, ()), [(A, None, None)]),
    "traits of what it created": (
        lambda known: add_tags(known, C, (), {aggregate_id(2)}),
        [(C, None, None)],
    ),
    "aggregates": (lambda known: add_tags(known, C, {"CUSTOM_GPU"}), [(C, None, None)]),
    "a drain": (
        lambda known: known.apply(draining.resume(known, A)),
        [(A, None, None)],
    ),
    "allocations": (
        lambda known: claim(known, C1, {R: {"VCPU": 2}, C: {VGPU: 3}}),
        [(C, VGPU, C1)],
    ),
    "a consumer that is gone": (
        lambda known: claim(known, C1, {}),
        [(R, VGPU, C1), (C, VGPU, C1)],
    ),
    "a consumer that is there again": (
        lambda known: claim(known, C2, {R: {"VCPU": 1}}),
        [(B, VF, C2)],
    ),
    "a provider that is there again": (
        lambda known: add_provider(known, B, parent=R),
        [(B, None, None)],
    ),
    "a class of what it created": (
        lambda known: known.apply(Changes(inventories={(C, "VCPU"): Inventory(1)})),
        [(C, "VCPU", None)],
    ),
}


@pytest.mark.parametrize("what", SINCE)
def test_what_has_changed_since_is_named(what: str) -> None:
    """Anything that the reshape wrote and that differs now refuses the undo, with its place."""
    known = world()
    way_back = commit(known, everything())
    change, places = SINCE[what]
    change(known)
    hold(known)
    before = image(known)
    made = plan_back(known, way_back)
    changed = [one for one in made.violations if one.code.value == "changed_since"]
    assert [(one.provider, one.resource_class, one.consumer) for one in changed] == places
    assert not made.changes
    assert made.inverse is None
    assert image(known) == before


def test_a_change_of_every_kind_is_undone() -> None:
    """Created, renamed, moved, deleted, figures, tags, allocations: all is as before, twice."""
    known = world()
    before, created = image(known), known.consumers[C2].created_at
    assert created != NOW
    forth: Inverse = commit(known, everything())
    assert {type(effect) for effect in forth.effects} == {*get_args(effects.Effect)}
    after = image(known)
    back = undo(known, forth)
    assert image(known) == before
    forth = undo(known, back)
    assert image(known) == after
    undo(known, forth)
    assert image(known) == before
    assert known.consumers[C2].generation == 1
    assert known.consumers[C2].created_at == created


def test_what_others_change_does_not_matter() -> None:
    """Other names, traits, inventories and claims stay through an undo, on the same providers."""
    known = world()
    way_back = commit(
        known, ReshapePlan(rename={A: "other"}, inventories={R: {VF: Figures(reserved=1)}})
    )
    figures(known, R, VGPU, max_unit=7)
    provider(known, B, name="mine")
    provider(known, A, parent=None, root=A)
    provider(known, B, root=A)
    add_tags(known, R, {"CUSTOM_GPU"})
    claim(known, C3, {R: {VF: 3, VGPU: 1}})
    undo(known, way_back)
    assert known.providers[A].name != "other"
    assert known.providers[A].parent is None
    assert known.inventories[R][VGPU].max_unit == 7
    assert known.inventories[R][VF].reserved == 0
    assert known.consumers[C3].allocations == {R: {VF: 3, VGPU: 1}}


def test_children_of_what_is_undone_are_in_the_way() -> None:
    """A provider that somebody has put below a created one keeps it, and is named."""
    known = world()
    way_back = commit(known, ReshapePlan(create=(NewProvider(C, "c", R),)))
    add_provider(known, D, parent=C)
    hold(known)
    made = plan_back(known, way_back)
    assert codes(made) == ["has_children"]
    assert D in made.violations[0].message


def test_a_name_that_is_taken_in_between_is_in_the_way() -> None:
    """The name of a deleted provider may have another owner."""
    known = world()
    claim(known, C2, {})
    way_back = commit(known, ReshapePlan(delete=frozenset({B})))
    add_provider(known, D, name=world().providers[B].name)
    hold(known)
    assert codes(plan_back(known, way_back)) == ["name_taken"]
    gone(known, D)
    undo(known, way_back)


def test_what_reports_and_operators_have_set_comes_back() -> None:
    """A deleted provider is drained again and belongs to its reporters again."""
    known = world()
    claim(known, C2, {})
    known.apply(draining.drain(known, B, "broken fan"))
    mine = (Reported("ironic", frozenset({"CUSTOM_GPU"}), owned=True),)
    known.apply(Changes(tags={B: replace(known.tags[B], reported=mine)}))
    before = image(known)
    undo(known, commit(known, ReshapePlan(delete=frozenset({B}))))
    assert image(known) == before
    undo(known, commit(known, ReshapePlan(traits={B: frozenset()})))
    assert image(known) == before
    assert known.tags[B].reported == mine


def test_excess_may_come_back() -> None:
    """What was over capacity before the reshape may be so after its undo, and not more."""
    known = world()
    figures(known, R, VGPU, total=3)
    before = image(known)
    way_back = commit(known, ReshapePlan(inventories={R: {VGPU: Figures(total=9)}}))
    claim(known, C3, {R: {"VCPU": 1}})
    undo(known, way_back)
    claim(known, C3, {})
    assert image(known) == before
    way_back = commit(known, ReshapePlan(inventories={R: {VGPU: Figures(total=9)}}))
    claim(known, C3, {R: {VGPU: 1}})
    assert codes(plan_back(known, way_back)) == ["capacity"]


def test_a_provider_of_an_agent_is_not_deleted_by_an_undo() -> None:
    """An agent that came to a created provider since then keeps it."""
    known = world()
    way_back = commit(known, ReshapePlan(create=(NewProvider(C, "c", R),)))
    provider(known, C, agent=AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee"))
    assert codes(plan_back(known, way_back)) == ["managed"]


def test_the_trees_of_an_undo_are_whole() -> None:
    """What is above a provider is shown as well, even if only consumers have moved."""
    known = world()
    claim(known, C1, {A: {VGPU: 1}})
    add_provider(known, D, parent=R, offer={VGPU: Inventory(8)})
    hold(known)
    way_back = commit(known, ReshapePlan(moves=(move((A, VGPU), (D, VGPU), 0, **{K1: {D: 1}}),)))
    shown = plan_back(known, way_back)
    assert [one.provider for one in shown.summary.providers] == [R, A, D]
    assert shown == plan_undo(known, NOW, way_back)


def test_a_drain_is_part_of_the_shape() -> None:
    """It closes all below it, in the batch that creates what it closes; undo opens it again.

    Who is drained already keeps the reason, also through the undo.
    """
    known = world()
    before, generation = image(known), known.providers[A].generation
    shape = {"create": (NewProvider(C, "c", A),), "inventories": {C: {VF: Figures(total=2)}}}
    way_back = commit(known, ReshapePlan(**shape, drain={A: "broken fan"}))
    for uuid in (A, B, C):
        assert known.providers[uuid].withheld == Withheld("drained: broken fan", A)
        assert all(one.withheld for one in known.inventories_of(uuid).values())
    assert known.providers[R].withheld is None
    assert known.providers[A].generation == generation
    undo(known, way_back)
    assert image(known) == before
    known.apply(draining.drain(known, A, "mine"))
    before = image(known)
    way_back = commit(known, ReshapePlan(**shape, drain={A: "broken fan"}))
    assert known.providers[C].withheld == Withheld("drained: mine", A)
    undo(known, way_back)
    assert image(known) == before


def test_what_cannot_be_drained_by_a_plan() -> None:
    """Agents drain their machines, nothing is drained and deleted, nor what does not exist."""
    for drained, expected in ((D, ["provider_unknown"]), (B, ["provider_deleted", "in_use"])):
        wish = ReshapePlan(drain={drained: ""}, delete=frozenset({B}))
        assert set(expected) <= {*codes(planned(world(), wish))}
    for mine in (A, B):
        known = world()
        provider(known, mine, agent=AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee"))
        assert codes(planned(known, ReshapePlan(drain={A: ""}))) == ["managed"]


def test_closure_follows_the_tree_and_back() -> None:
    """What comes below a drained provider is withheld, and open again after the undo."""
    known = world()
    add_provider(known, D, parent=R)
    hold(known)
    known.apply(draining.drain(known, D, ""))
    before = image(known)
    way_back = commit(known, ReshapePlan(create=(NewProvider(C, "c", A),), parents={A: D}))
    assert known.providers[B].withheld == Withheld("drained", D)
    assert known.providers[C].withheld == Withheld("drained", D)
    assert known.inventories[B][VF].withheld
    assert known.providers[B].generation == 0
    undo(known, way_back)
    assert image(known) == before
