"""The example that reshape plans are made for: a compute node whose GPUs stood on the root."""

from typing import Any

from msgspec import json

from moorage.core.ids import ConsumerId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.plan import Figures, Policy, ReshapePlan
from tests.core.ledger.build import add_trait, consumer_id
from tests.core.ledger.reshaping.worlds import (
    BANDWIDTH,
    VF,
    VGPU,
    A,
    B,
    C,
    R,
    children,
    claim,
    codes,
    commit,
    done,
    host,
    image,
    move,
    plan_back,
    planned,
    undo,
)

G1, G2, OFF1, OFF2, NEWCOMER = (consumer_id(n) for n in range(1, 6))
SPLIT = dict.fromkeys((A, B, C), frozenset({"CUSTOM_GPU"}))


def key(consumer: ConsumerId) -> str:
    """Return a consumer as a keyword."""
    return consumer.replace("-", "_")


def busy() -> Facts:
    """Return the node with two guests that run and two that are powered off."""
    known = host()
    add_trait(known, "CUSTOM_GPU")
    claim(known, G1, {R: {"VCPU": 4, VGPU: 3, VF: 2, BANDWIDTH: 1_000}})
    claim(known, G2, {R: {"VCPU": 4, VGPU: 2}})
    claim(known, OFF1, {R: {"VCPU": 2, VGPU: 1}})
    claim(known, OFF2, {R: {"VCPU": 2, VGPU: 1}})
    return known


def split(**changed: Any) -> ReshapePlan:
    """Return the first step: evidence for the guests that run, the others stay."""
    parts: dict[str, Any] = {
        "create": children(A, B, C),
        "traits": SPLIT,
        "stay": frozenset({OFF1, OFF2}),
        "moves": (
            move((R, VGPU), (A, VGPU), 8, **{key(G1): {A: 2, B: 1}}),
            move((R, VGPU), (B, VGPU), 7, **{key(G2): {B: 2}}),
            move((R, VGPU), (C, VGPU)),
            move((R, VF), (A, VF), 4, **{key(G1): {A: 2}}),
            move((R, VF), (B, VF), 4),
            move((R, VF), (C, VF)),
            move((R, BANDWIDTH), (A, BANDWIDTH), **{key(G1): {A: 1_000}}),
        ),
    }
    return ReshapePlan(**{**parts, **changed})


def test_a_split_by_evidence_in_two_steps() -> None:
    """Guests that are powered off stay on the root, where nothing new lands, until seen."""
    known = busy()
    commit(known, split())
    rest = known.inventories[R][VGPU]
    assert (rest.total, rest.reserved, rest.used) == (2, 2, 2)
    assert {uuid: known.inventories[uuid][VGPU].total for uuid in (A, B, C)} == {A: 8, B: 7, C: 7}
    assert {uuid: known.inventories[uuid][VGPU].used for uuid in (A, B, C)} == {A: 2, B: 3, C: 0}
    assert set(known.inventories[R]) == {"VCPU", VGPU}
    assert known.consumers[G1].allocations == {
        R: {"VCPU": 4},
        A: {VGPU: 2, VF: 2, BANDWIDTH: 1_000},
        B: {VGPU: 1},
    }
    assert known.inventories[A][BANDWIDTH].step_size == 100
    assert known.tags[A].traits == {"CUSTOM_GPU"}
    assert [known.providers[uuid].generation for uuid in (R, A, B, C)] == [1, 1, 1, 1]
    assert [known.consumers[uuid].generation for uuid in (G1, G2, OFF1)] == [2, 2, 1]
    second = ReshapePlan(
        moves=(
            move((R, VGPU), (B, VGPU), 1, **{key(OFF1): {B: 1}}),
            move((R, VGPU), (C, VGPU), None, **{key(OFF2): {C: 1}}),
        )
    )
    commit(known, second)
    assert set(known.inventories[R]) == {"VCPU"}
    assert [known.inventories[uuid][VGPU].total for uuid in (A, B, C)] == [8, 8, 8]
    assert known.consumers[OFF2].allocations == {R: {"VCPU": 2}, C: {VGPU: 1}}


def test_a_card_that_is_whole_still_gets_a_guest() -> None:
    """A move of no units takes consumers along; without it nobody may be assigned there."""
    known = busy()
    commit(known, split())
    whole = move((R, VGPU), (A, VGPU), 0, **{key(OFF1): {A: 1}, key(OFF2): {A: 1}})
    rest = (move((R, VGPU), (B, VGPU), 1), move((R, VGPU), (C, VGPU), 1))
    elsewhere = move((R, VGPU), (B, VGPU), 1, **{key(OFF1): {A: 1}, key(OFF2): {A: 1}})
    control = planned(known, ReshapePlan(moves=(elsewhere, rest[1])))
    assert codes(control) == ["assign_elsewhere"] * 2
    commit(known, ReshapePlan(moves=(whole, *rest)))
    assert [known.inventories[uuid][VGPU].total for uuid in (A, B, C)] == [8, 8, 8]
    assert [known.inventories[uuid][VGPU].used for uuid in (A, B, C)] == [4, 3, 0]


def test_drift_is_shown_and_must_be_accepted() -> None:
    """If the evidence has three units and the ledger two, only the operator may decide."""
    known = busy()
    wish = split()
    seen = move((R, VGPU), (B, VGPU), 7, **{key(G2): {B: 3}})
    moves = (wish.moves[0], seen, *wish.moves[2:])
    made = planned(known, split(moves=moves))
    assert codes(made) == ["drift"]
    assert (made.violations[0].consumer, made.violations[0].amount) == (G2, 2)
    assert not made.changes
    commit(known, split(moves=moves, accept_drift=frozenset({G2})))
    assert known.consumers[G2].allocations == {R: {"VCPU": 4}, B: {VGPU: 3}}


def test_a_guest_without_evidence_must_be_named() -> None:
    """Everybody who is not covered is listed, with the amount."""
    made = planned(busy(), split(stay=frozenset()))
    assert [(one.code.value, one.consumer, one.amount) for one in made.violations] == [
        ("unassigned", OFF1, 1),
        ("unassigned", OFF2, 1),
    ]


def test_what_does_not_fit_is_infeasible() -> None:
    """Guests of five units do not fit on targets of four; and only if units are alike at all."""
    known = host()
    claim(known, G1, {R: {VF: 5}})
    claim(known, G2, {R: {VF: 2}})
    moves = [move((R, VF), (uuid, VF), 4, Policy.FIT) for uuid in (A, B, C)]
    wish = ReshapePlan(create=children(A, B, C), moves=tuple(moves))
    assert codes(planned(known, wish)) == ["not_fungible"]
    wish = ReshapePlan(create=wish.create, moves=wish.moves, fungible=frozenset({VF}))
    made = planned(known, wish)
    assert [(one.code.value, one.consumer, one.amount) for one in made.violations] == [
        ("infeasible", G1, 5)
    ]
    claim(known, G1, {R: {VF: 4}})
    commit(known, wish)
    assert known.consumers[G1].allocations == {A: {VF: 4}}
    assert known.consumers[G2].allocations == {B: {VF: 2}}


def test_a_search_leaves_room_for_the_evidence() -> None:
    """Where evidence and a search share targets, the search has what the evidence leaves."""
    known = host()
    claim(known, G1, {R: {VF: 3}})
    claim(known, G2, {R: {VF: 2}})
    claim(known, OFF1, {R: {VF: 1}})
    moves = (
        move((R, VF), (A, VF), 4, Policy.FIT, **{key(G1): {A: 3}}),
        move((R, VF), (B, VF), None, Policy.FIT),
    )
    commit(known, ReshapePlan(create=children(A, B), moves=moves, fungible=frozenset({VF})))
    assert known.consumers[G2].allocations == {B: {VF: 2}}
    assert known.consumers[OFF1].allocations == {A: {VF: 1}}


def test_a_search_finds_nothing_on_a_source_that_is_closed() -> None:
    """Where units stay, nothing new lands, also not by a search of the same plan."""
    known = host()
    claim(known, G1, {R: {VF: 4}})
    commit(known, ReshapePlan(create=children(A), inventories={A: {VF: Figures(total=12)}}))
    claim(known, G2, {A: {VF: 2}})

    def exchange(kept: int) -> ReshapePlan:
        back = move((A, VF), (R, VF), 4, **{key(G2): {A: kept, R: 2 - kept}})
        moves = (move((R, VF), (A, VF), None, Policy.FIT), back)
        return ReshapePlan(moves=moves, fungible=frozenset({VF}))

    made = planned(known, exchange(kept=2))
    assert codes(made) == ["infeasible"]
    assert made.violations[0].consumer == G1
    commit(known, exchange(kept=0))
    assert known.consumers[G1].allocations == {A: {VF: 4}}


def test_free_units_move_and_those_in_use_stay_open() -> None:
    """With only_if_unused the source keeps what is used and reserved, and stays open."""
    known = busy()
    commit(known, ReshapePlan(inventories={R: {VGPU: Figures(reserved=3)}}))
    free = move((R, VGPU), (A, VGPU), None, Policy.ONLY_IF_UNUSED)
    commit(known, ReshapePlan(create=children(A), moves=(free,)))
    rest = known.inventories[R][VGPU]
    assert (rest.total, rest.reserved, rest.used) == (10, 3, 7)
    assert known.inventories[A][VGPU].total == 14


def test_what_is_reserved_in_full_moves_as_a_whole() -> None:
    """An inventory that nobody may use moves like any other: nothing of it stays reserved."""
    known = host()
    commit(known, ReshapePlan(inventories={R: {VF: Figures(reserved=12)}}))
    some = move((R, VF), (A, VF), 4, Policy.ONLY_IF_UNUSED)
    commit(known, ReshapePlan(create=children(A), moves=(some,)))
    assert (known.inventories[R][VF].total, known.inventories[R][VF].reserved) == (8, 8)
    rest = move((R, VF), (A, VF), None, Policy.ONLY_IF_UNUSED)
    commit(known, ReshapePlan(moves=(rest,)))
    assert VF not in known.inventories[R]
    assert (known.inventories[A][VF].total, known.inventories[A][VF].reserved) == (12, 0)


def test_a_residual_source_may_stay_open() -> None:
    """The plan may reserve less of a residual source; then it must have room for who is there."""
    known = busy()
    opened = {R: {VGPU: Figures(reserved=1)}}
    commit(known, split(inventories=opened))
    rest = known.inventories[R][VGPU]
    assert (rest.total, rest.reserved, rest.used) == (3, 1, 2)


def test_undo_gives_back_the_glommed_tree() -> None:
    """An undo restores everything, also beside a claim that came later and fits."""
    known = busy()
    before = image(known)
    way_back = commit(known, split())
    stored = json.decode(json.encode(way_back), type=Inverse)
    assert stored == way_back
    forth = undo(known, stored)
    assert image(known) == before
    undo(known, forth)
    undo(known, way_back)
    assert image(known) == before


def test_undo_names_who_came_to_a_child() -> None:
    """A guest that came to a GPU in between is in the way, and what was changed again, too."""
    known = busy()
    way_back = commit(known, split())
    claim(known, NEWCOMER, {R: {"VCPU": 1}})
    assert plan_back(known, way_back).violations == ()
    claim(known, NEWCOMER, {R: {"VCPU": 1}, C: {VGPU: 2}})
    made = plan_back(known, way_back)
    assert [
        (one.code.value, one.provider, one.consumer, one.amount) for one in made.violations
    ] == [("in_use", C, NEWCOMER, 2)]
    commit(known, ReshapePlan(inventories={A: {VGPU: Figures(max_unit=4)}}))
    claim(known, G2, {R: {"VCPU": 4}, B: {VGPU: 1}})
    made = plan_back(known, way_back)
    assert [(one.code.value, one.provider, one.consumer) for one in made.violations] == [
        ("changed_since", A, None),
        ("changed_since", B, G2),
        ("in_use", C, NEWCOMER),
    ]
    assert not made.changes


def test_claims_elsewhere_keep_the_digest() -> None:
    """The digest is of what changes: claims and generations elsewhere do not matter."""
    known = busy()
    first = planned(known, split())
    claim(known, NEWCOMER, {R: {"VCPU": 3}})
    again = planned(known, split())
    assert again.digest == first.digest
    done(known, again)
    known = busy()
    claim(known, NEWCOMER, {R: {VGPU: 1}})
    assert planned(known, split()).digest != ""
    assert codes(planned(known, split())) == ["unassigned"]
