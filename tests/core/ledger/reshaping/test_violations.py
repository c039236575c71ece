"""Each violation, by a plan made for it: everything that is wrong is listed, in order."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.ids import AgentId, ConsumerId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping import splits
from moorage.core.ledger.reshaping.conservation import conserved
from moorage.core.ledger.reshaping.plan import (
    Figures,
    Generations,
    NewProvider,
    Policy,
    ReshapePlan,
)
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Wanted
from tests.core.ledger.build import C1, C2, C3, add_provider, aggregate_id, provider_id
from tests.core.ledger.reshaping.worlds import (
    BANDWIDTH,
    VF,
    VGPU,
    A,
    B,
    C,
    D,
    R,
    children,
    claim,
    hold,
    host,
    image,
    move,
    planned,
)

Expected = list[tuple[Any, ...]]
Case = tuple[ReshapePlan, Expected]
CASES: dict[str, Callable[[Facts], Case]] = {}
GONE = provider_id(77)
K1, K2, K3 = (uuid.replace("-", "_") for uuid in (C1, C2, C3))
FIT = Policy.FIT
ALIKE = frozenset({VGPU})


def case(make: Callable[[Facts], Case]) -> Callable[[Facts], Case]:
    """Add a case to the table; its name begins with the code that it is for."""
    CASES[make.__name__.removeprefix("_")] = make
    return make


def world() -> Facts:
    """Return the node, with a child A, C1 on VGPU and C2 on VGPU and VF; another root D."""
    known = host()
    add_provider(known, A, parent=R, offer={VGPU: Inventory(8)})
    add_provider(known, D, name="compute-2", offer={VGPU: Inventory(8)})
    claim(known, C1, {R: {VGPU: 4}})
    claim(known, C2, {R: {VGPU: 2, VF: 2}})
    return known


def everybody(target: ProviderId = A, amount: int | None = None) -> Any:
    """Return a move of VGPU for both consumers."""
    return move((R, VGPU), (target, VGPU), amount, **{K1: {target: 4}, K2: {target: 2}})


@case
def _generation_changed(_: Facts) -> Case:
    expect = Generations({R: 7, A: 0}, {C1: 1, C2: 5, C3: 1})
    return ReshapePlan(expect=expect), [(R, None, None, 0), (None, None, C2, 1), (None, None, C3)]


@case
def _too_large(_: Facts) -> Case:
    return ReshapePlan(moves=(everybody(),) * 1_001), [(None, None, None, 1_001)]


@case
def _provider_unknown(_: Facts) -> Case:
    plan = ReshapePlan(
        create=(NewProvider(B, "b", GONE),),
        rename={C: "c"},
        moves=(move((R, VF), (provider_id(78), VF)),),
    )
    return plan, [(C,), (GONE,), (provider_id(78),)]


@case
def _provider_exists(_: Facts) -> Case:
    twice = (NewProvider(A, "a"), NewProvider(B, "b", R), NewProvider(B, "c", R))
    return ReshapePlan(create=twice), [(A,), (B,)]


@case
def _provider_deleted(_: Facts) -> Case:
    plan = ReshapePlan(
        delete=frozenset({A}), rename={A: "a"}, moves=(move((R, BANDWIDTH), (A, BANDWIDTH)),)
    )
    return plan, [(A,)]


@case
def _consumer_unknown(_: Facts) -> Case:
    plan = ReshapePlan(moves=(everybody(), move((R, VGPU), (A, VGPU), 1, **{K3: {A: 1}})))
    return plan, [(R, VGPU, C3)]


@case
def _class_unknown(_: Facts) -> Case:
    offer = {"CUSTOM_NO": Figures(total=1), "CUSTOM_NEITHER": Figures(total=1)}
    return ReshapePlan(inventories={A: offer}), [(A, "CUSTOM_NEITHER"), (A, "CUSTOM_NO")]


@case
def _trait_unknown(_: Facts) -> Case:
    return ReshapePlan(traits={A: frozenset({"CUSTOM_NO", "CUSTOM_NOR"})}), [(A,), (A,)]


@case
def _name_invalid(_: Facts) -> Case:
    return ReshapePlan(rename={R: "", A: "x" * 201}), [(R,), (A,)]


@case
def _name_taken(_: Facts) -> Case:
    plan = ReshapePlan(create=(NewProvider(B, "compute-1", R),), rename={A: "compute-2"})
    return replace(plan, cross_tree=True), [(A,), (B,)]


@case
def _tree_loop(known: Facts) -> Case:
    add_provider(known, B, parent=A)
    return ReshapePlan(parents={R: B}), [(R,)]


@case
def _has_children(known: Facts) -> Case:
    add_provider(known, B, parent=A)
    plan = ReshapePlan(create=(NewProvider(C, "c", A),), delete=frozenset({A}))
    return plan, [(A,), (A,)]


@case
def _other_tree(_: Facts) -> Case:
    return ReshapePlan(moves=(everybody(D),)), [(None, None, None, 2)]


@case
def _aggregates_exceeded(_: Facts) -> Case:
    many = frozenset(aggregate_id(n) for n in range(1_001))
    return ReshapePlan(aggregates={A: many}), [(A, None, None, 1_001)]


@case
def _managed(known: Facts) -> Case:
    agent = AgentId("00000001-eeee-4eee-8eee-eeeeeeeeeeee")
    known.apply(Changes(providers={A: replace(known.providers[A], agent=agent)}))
    known.inventories[A][VGPU] = replace(known.inventories[A][VGPU], offered=8)
    plan = ReshapePlan(delete=frozenset({A}), moves=(move((A, VGPU), (R, VGPU)),))
    return plan, [(A,), (A, VGPU)]


@case
def _source_missing(_: Facts) -> Case:
    return ReshapePlan(moves=(move((A, VF), (R, VF)),)), [(A, VF)]


@case
def _same_place(_: Facts) -> Case:
    return ReshapePlan(moves=(move((A, VGPU), (A, VGPU), 1),)), [(A, VGPU)]


@case
def _amount_invalid(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU), -1, **{K1: {A: -1}}), everybody(amount=1))
    plan = ReshapePlan(moves=moves)
    return plan, [(R, VGPU, None, -1), (R, VGPU, C1, -1)]


@case
def _policies_differ(_: Facts) -> Case:
    used = move((R, VGPU), (A, VGPU), 1, Policy.ONLY_IF_UNUSED)
    return ReshapePlan(moves=(everybody(amount=6), used)), [(R, VGPU)]


@case
def _all_twice(_: Facts) -> Case:
    moves = (everybody(), move((R, VGPU), (B, VGPU)))
    return ReshapePlan(create=children(B), moves=moves), [(R, VGPU)]


@case
def _target_ambiguous(_: Facts) -> Case:
    moves = (everybody(amount=6), move((R, VGPU), (A, VF), 1))
    return ReshapePlan(moves=moves), [(A, VGPU, C1, 4), (A, VGPU, C2, 2)]


@case
def _assign_contradicts(_: Facts) -> Case:
    moves = (everybody(amount=6), move((R, VGPU), (A, VGPU), 1, **{K1: {A: 3}}))
    return ReshapePlan(moves=moves), [(R, VGPU, C1, 3)]


@case
def _assign_elsewhere(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU), 6, **{K1: {B: 4}, K2: {D: 1, A: 1}}),)
    return ReshapePlan(moves=moves), [(B, VGPU, C1, 4), (D, VGPU, C2, 1)]


@case
def _source_short(_: Facts) -> Case:
    return ReshapePlan(moves=(everybody(amount=30),)), [(R, VGPU, None, 6)]


@case
def _drift(_: Facts) -> Case:
    moves = (
        move((R, VGPU), (A, VGPU), **{K1: {A: 5}, K2: {A: 1}}),
        move((R, VF), (A, VF), **{K1: {A: 0}, K2: {A: 3}}),
    )
    plan = ReshapePlan(moves=moves, release=frozenset({C1}), stay=frozenset({C2}))
    return plan, [(R, VGPU, C1, 4), (R, VGPU, C2, 2), (R, VF, C2, 2)]


@case
def _unassigned(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU)), move((R, VF), (A, VF)))
    return ReshapePlan(moves=moves), [(R, VGPU, C1, 4), (R, VGPU, C2, 2), (R, VF, C2, 2)]


@case
def _not_fungible(_: Facts) -> Case:
    return ReshapePlan(moves=(move((R, VGPU), (A, VGPU), None, FIT),)), [(R, VGPU)]


@case
def _infeasible(known: Facts) -> Case:
    claim(known, C3, {R: {VGPU: 4}})
    moves = [move((R, VGPU), (uuid, VGPU), 5, FIT) for uuid in (B, C)]
    return ReshapePlan(create=children(B, C), moves=tuple(moves), fungible=ALIKE), [(R, VGPU)]


@case
def _source_in_use(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU), 20, Policy.ONLY_IF_UNUSED),)
    return ReshapePlan(moves=moves), [(R, VGPU, None, 2)]


@case
def _residual_short(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU), 21, **{K1: {A: 4}}), move((R, VF), (A, VF), 12))
    plan = ReshapePlan(moves=moves, stay=frozenset({C2}))
    return plan, [(R, VF, None, 2)]


@case
def _total_contradicts(_: Facts) -> Case:
    given = {R: {VGPU: None}, A: {VGPU: Figures(total=9)}}
    return ReshapePlan(moves=(everybody(amount=20),), inventories=given), [
        (R, VGPU, None, 4),
        (A, VGPU, None, 28),
    ]


@case
def _total_missing(_: Facts) -> Case:
    return ReshapePlan(inventories={A: {VF: Figures(reserved=1)}}), [(A, VF)]


@case
def _figures_invalid(_: Facts) -> Case:
    given = {
        A: {VGPU: Figures(reserved=9), VF: Figures(total=10**400)},
        R: {BANDWIDTH: Figures(step_size=0), VGPU: Figures(allocation_ratio=1e308)},
    }
    return ReshapePlan(inventories=given), [(R, BANDWIDTH), (R, VGPU), (A, VF), (A, VGPU)]


@case
def _units(_: Facts) -> Case:
    given = {A: {VGPU: Figures(max_unit=3)}}
    return ReshapePlan(moves=(everybody(),), inventories=given), [(A, VGPU, C1, 4)]


@case
def _capacity(_: Facts) -> Case:
    given = {R: {VF: Figures(reserved=12)}}
    moves = (everybody(B, 5),)
    return ReshapePlan(create=children(B), moves=moves, inventories=given), [
        (R, VF, None, 2),
        (B, VGPU, None, 1),
    ]


@case
def _inventory_missing(_: Facts) -> Case:
    moves = (move((R, VGPU), (A, VGPU), 18), move((R, VGPU), (B, VGPU), None))
    assigned = replace(moves[0], assign={C1: {A: 4}, C2: {A: 1, B: 1}})
    taken = replace(assigned, amount=24)
    return ReshapePlan(create=children(B), moves=(taken, moves[1])), [(B, VGPU, C2, 1)]


@case
def _in_use(known: Facts) -> Case:
    claim(known, C3, {A: {VGPU: 3}})
    plan = ReshapePlan(
        inventories={R: {VGPU: None}},
        moves=(move((A, VGPU), (R, BANDWIDTH), 1),),
        delete=frozenset({A}),
        stay=frozenset({C3}),
    )
    return plan, [(R, VGPU, C1, 4), (R, VGPU, C2, 2), (A, VGPU, C3, 3)]


ELSEWHERE = {
    ViolationCode.GAVE_UP: "test_a_search_that_takes_too_long_gives_up",
    ViolationCode.NOT_CONSERVED: "test_units_that_appear_are_found",
    ViolationCode.CHANGED_SINCE: "tests/core/ledger/reshaping/test_undo.py",
    ViolationCode.LEASE_ENDED: "tests/service/ledger/reshapes/test_leases.py",
    ViolationCode.NOT_OWN: "tests/core/ledger/reshaping/test_own_tree.py",
    ViolationCode.OPERATORS_ONLY: "tests/core/ledger/reshaping/test_own_tree.py",
}


@pytest.mark.parametrize("name", CASES)
def test_all_that_is_wrong_is_listed(name: str) -> None:
    """Each case lists its violations with their places, and changes nothing."""
    known = world()
    plan, expected = CASES[name](known)
    hold(known)
    before = image(known)
    made = planned(known, plan)
    found = [
        (one.code.value, one.provider, one.resource_class, one.consumer, one.amount)
        for one in made.violations
    ]
    assert found == [(name, *one, *[None] * (4 - len(one))) for one in expected]
    assert not made.changes
    assert made.inverse is None
    assert image(known) == before


def test_every_code_has_a_case() -> None:
    """No code is without a plan that shows it."""
    assert {*CASES, *(code.value for code in ELSEWHERE)} == {code.value for code in ViolationCode}


def test_a_negative_reserve_makes_no_units() -> None:
    """All that is left is never more than there is, whatever figures the plan gives."""
    for policy in (Policy.ONLY_IF_UNUSED, Policy.FIT):
        plan = ReshapePlan(
            moves=(move((D, VGPU), (A, VGPU), None, policy),),
            inventories={D: {VGPU: Figures(reserved=-1)}},
            fungible=ALIKE,
            cross_tree=True,
        )
        made = planned(world(), plan)
        after = {one.provider: one.after for one in made.summary.places}
        assert after[D] is None
        assert after[A] is not None
        assert after[A].total == 16


def test_violations_of_all_kinds_are_listed_together() -> None:
    """One plan with many errors shows all of them."""
    plan = ReshapePlan(
        create=(NewProvider(B, "compute-1", R),),
        moves=(
            move((R, VGPU), (B, VGPU), 12, **{K1: {B: 5}}),
            move((R, VF), (GONE, VF)),
            move((R, BANDWIDTH), (B, "CUSTOM_NO"), 100),
        ),
        traits={A: frozenset({"CUSTOM_NO"})},
        delete=frozenset({A}),
    )
    assert [one.code.value for one in planned(world(), plan).violations] == [
        "provider_unknown",
        "provider_deleted",
        "name_taken",
        "drift",
        "unassigned",
        "class_unknown",
        "trait_unknown",
    ]


def test_a_search_that_takes_too_long_gives_up() -> None:
    """It is another answer than infeasible: there may be a distribution."""
    known = host()
    rng = [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]
    known.inventories[R][VGPU] = Inventory(10_000)
    for n in range(60):
        claim(
            known, ConsumerId(f"{n:08d}-0000-4000-8000-000000000000"), {R: {VGPU: 60 + rng[n % 12]}}
        )
    whole = sum(60 + rng[n % 12] for n in range(60))
    targets = [provider_id(100 + n) for n in range(12)]
    moves = [move((R, VGPU), (uuid, VGPU), whole // 12 + 1, FIT) for uuid in targets]
    plan = ReshapePlan(create=children(*targets), moves=tuple(moves), fungible=ALIKE)
    assert [one.code.value for one in planned(known, plan).violations] == ["gave_up"]


def test_units_that_appear_are_found() -> None:
    """Conservation is judged from before and after, not from the moves."""
    known = world()
    plan = ReshapePlan(moves=(move((R, VGPU), (A, VF)),), release=frozenset({C2}))
    after: dict[ConsumerId, Any] = {
        C1: {A: {VGPU: 1, VF: 4}},
        C2: {A: {VF: 3}},
        C3: {A: {"VCPU": 1}},
    }
    found = list(conserved(known, plan, Wanted(allocations=after)))
    assert [(one.code.value, one.consumer, one.resource_class, one.amount) for one in found] == [
        ("not_conserved", C1, VF, 1),
        ("not_conserved", C3, "VCPU", 1),
    ]


def test_the_engine_checks_conservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a split lost units, the plan would be refused."""
    whole = splits._assigned

    def careless(*args: Any) -> Any:
        placed = whole(*args)
        return {key: amount - 1 for key, amount in placed.items()}

    monkeypatch.setattr(splits, "_assigned", careless)
    made = planned(world(), ReshapePlan(moves=(everybody(),)))
    assert [one.code.value for one in made.violations] == ["not_conserved"] * 2
    assert isinstance(made.violations[0], Violation)
