"""Consumers lose what they hold of providers that they vacate; undo restores it."""

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.ids import ConsumerId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import Generations, Policy, ReshapePlan
from tests.core.ledger.build import C1, C2, C3, add_provider
from tests.core.ledger.reshaping.worlds import (
    VGPU,
    A,
    B,
    D,
    R,
    claim,
    codes,
    commit,
    hold,
    host,
    image,
    move,
    planned,
    undo,
)


def world() -> Facts:
    """Return the node and another root D; C1 holds units of both, C2 of the node only."""
    known = host()
    add_provider(known, A, parent=R, offer={VGPU: Inventory(8)})
    add_provider(known, D, offer={"VCPU": Inventory(8)})
    claim(known, C1, {R: {"VCPU": 2}, A: {VGPU: 1}, D: {"VCPU": 2}})
    claim(known, C2, {R: {"VCPU": 2}})
    hold(known)
    return known


def plan(**more: Any) -> ReshapePlan:
    """Return a plan by which C1 leaves D, and C2 everything."""
    vacate = {C1: frozenset({D}), C2: frozenset({R})}
    return ReshapePlan(**{"vacate": vacate, "release": frozenset({C1, C2}), **more})


def test_only_what_is_vacated_is_lost() -> None:
    """C1 keeps its units elsewhere, C2 is gone; nothing needs `cross_tree`; undo restores both."""
    known = world()
    before = image(known)
    way_back = commit(known, plan())
    assert known.consumers[C1].allocations == {R: {"VCPU": 2}, A: {VGPU: 1}}
    assert C2 not in known.consumers
    assert known.inventories[D]["VCPU"].used == 0
    assert undo(known, way_back) is not None
    assert image(known) == before


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"release": frozenset({C1})}, ["not_conserved"]),
        ({"expect": Generations(consumers={C1: 77})}, ["generation_changed"]),
    ],
)
def test_it_is_refused(more: dict[str, Any], expected: list[str]) -> None:
    """A consumer that is not in `release` keeps its units, and so does one that has changed."""
    known = world()
    before = image(known)
    assert codes(planned(known, plan(**more))) == expected
    assert image(known) == before


def both(policy: Policy = Policy.EXPLICIT, **more: Any) -> tuple[Facts, ReshapePlan]:
    """Return a world, and a plan that moves units to A while C1, who holds some, vacates R."""
    known = host()
    add_provider(known, A, parent=R)
    add_provider(known, D, offer={"VCPU": Inventory(8)})
    claim(known, C1, {R: {VGPU: 3}, D: {"VCPU": 2}})
    claim(known, C2, {R: {VGPU: 1}})
    assign = {} if policy is Policy.FIT else {C2.replace("-", "_"): {A: 1}}
    members = {
        **{"moves": (move((R, VGPU), (A, VGPU), 12, policy, **assign),)},
        **{"vacate": {C1: frozenset({R})}, "release": frozenset({C1})},
        **{"fungible": frozenset({VGPU}), "cross_tree": True, **more},
    }
    return known, ReshapePlan(**members)


@pytest.mark.parametrize("policy", [Policy.FIT, Policy.EXPLICIT])
@pytest.mark.parametrize("stay", [frozenset(), frozenset({C1})])
def test_what_is_vacated_does_not_move(policy: Policy, stay: frozenset[ConsumerId]) -> None:
    """Neither a policy nor `stay` keeps units that are vacated; nothing is reserved for them."""
    known, wish = both(policy, stay=stay)
    before = image(known)
    way_back = commit(known, wish)
    assert known.consumers[C1].allocations == {D: {"VCPU": 2}}
    assert known.consumers[C2].allocations == {A: {VGPU: 1}}
    left = known.inventories[R][VGPU]
    assert (left.total, left.reserved, left.used) == (12, 0, 0)
    assert known.inventories[A][VGPU].used == 1
    undo(known, way_back)
    assert image(known) == before


def test_drift_allows_no_other_loss() -> None:
    """Evidence about one class of a consumer does not let it lose units of another one."""
    name = C1.replace("-", "_")
    for given in (3, 2, 5):
        moves = (move((R, VGPU), (A, VGPU), 12, **{name: {A: given}}),)
        drift = {"moves": moves, "accept_drift": frozenset({C1}), "stay": frozenset({C2})}
        known, wish = both(**drift, vacate={}, release=frozenset())
        assert codes(planned(known, wish)) == []
        known, wish = both(**drift, vacate={C1: frozenset({D})}, release=frozenset())
        assert codes(planned(known, wish)) == ["not_conserved"]
        known.inventories[D][VGPU] = Inventory(8)
        claim(known, C1, {R: {VGPU: 3}, D: {VGPU: 2}})
        assert codes(planned(known, wish)) == ["not_conserved"]
        known, wish = both(**drift, vacate={C1: frozenset({D})})
        assert codes(planned(known, wish)) == []


@pytest.mark.parametrize("policy", [Policy.EXPLICIT, Policy.FIT])
def test_nobody_is_assigned_what_it_vacates(policy: Policy) -> None:
    """Neither the source, which would stay reserved for units that are gone, nor a target.

    The control: units that are assigned elsewhere leave the source anyway.
    """
    name = C1.replace("-", "_")
    for place, expected in ((R, ["assign_contradicts"]), (A, [])):
        moves = (move((R, VGPU), (A, VGPU), 12, policy, **{name: {place: 3}}),)
        known, wish = both(moves=moves, stay=frozenset({C2}))
        before = image(known)
        made = planned(known, wish)
        assert codes(made) == expected
        assert [one.provider for one in made.violations] == [R] * len(expected)
        if expected:
            assert not made.changes
            continue
        undo(known, commit(known, wish))
        assert image(known) == before
    moves = (move((R, VGPU), (A, VGPU), 12, policy, **{name: {A: 3}}),)
    known, wish = both(moves=moves, stay=frozenset({C2}), vacate={C1: frozenset({A})})
    assert codes(planned(known, wish)) == ["assign_contradicts"]


def test_a_search_does_not_place_where_a_consumer_leaves() -> None:
    """A target that a consumer vacates is none for it, however much room there is."""
    known, wish = both(Policy.FIT, vacate={C1: frozenset({A})})
    assert codes(planned(known, wish)) == ["infeasible"]
    moves = tuple(move((R, VGPU), (uuid, VGPU), 8, Policy.FIT) for uuid in (A, D))
    known, wish = both(Policy.FIT, vacate={C1: frozenset({A})}, moves=moves)
    commit(known, wish)
    assert known.consumers[C1].allocations == {D: {"VCPU": 2, VGPU: 3}}


def test_a_provider_that_does_not_exist_is_not_vacated() -> None:
    """A typing error is named."""
    known, wish = both(vacate={C1: frozenset({B})})
    found = planned(known, wish).violations
    assert ("provider_unknown", B) in [(one.code.value, one.provider) for one in found]


@pytest.mark.parametrize("member", ["stay", "release", "vacate", "accept_drift"])
def test_a_consumer_that_does_not_exist_is_named(member: str) -> None:
    """No typing error passes in silence, whatever the member; the control: without it, all is well.

    Somebody who exists, and holds nothing of what changes, may be named.
    """
    for who, expected in ((C3, [("consumer_unknown", C3)]), (C1, [])):
        known, wish = both(stay=frozenset({C1, C2}), vacate={}, release=frozenset())
        assert codes(planned(known, wish)) == []
        added = {who: frozenset({A})} if member == "vacate" else getattr(wish, member) | {who}
        made = planned(known, replace(wish, **{member: added}))
        assert [(one.code.value, one.consumer) for one in made.violations] == expected
        assert all(member in one.message for one in made.violations)
