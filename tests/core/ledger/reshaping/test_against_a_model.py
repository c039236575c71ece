"""Random plans on random trees: the engine and a naive model agree, and the way back leads back."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.core.ledger.facts import Facts
from moorage.core.ledger.reshaping import (
    conservation,
    final_state,
    inverse,
    planning,
    shape,
    totals,
)
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.planning import Planned, plan_reshape, plan_undo
from tests.core.ledger.build import NOW, consumer_id
from tests.core.ledger.reshaping.drawn import (
    document,
    draw_plan,
    draw_state,
    facts_of,
    nested,
    state_of,
)
from tests.core.ledger.reshaping.model import RATIO, RESERVED, TOTAL, Plan, State, outcomes, used
from tests.core.ledger.reshaping.worlds import claim, done, image, plan_back, planned
from tests.support.seeds import is_share, seeds

EXAMPLES = 100 if is_share() else 1_000
bounds = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
NEWCOMER = consumer_id(80)


@pytest.mark.played_in_part
@bounds
@given(st.randoms(use_true_random=False))
def test_the_engine_and_the_model_agree(draw: random.Random) -> None:
    """A plan is refused if and only if the model refuses it, otherwise both reach one state."""
    check(draw)


def check(draw: random.Random) -> tuple[Planned, set[str]]:
    """Plan, commit and undo one random plan."""
    state = draw_state(draw)
    plan = draw_plan(draw, state)
    drained = [uuid for uuid in state["providers"] if draw.random() < 0.15]
    known = facts_of(state, drained)
    before = image(known)
    made = plan_reshape(known, NOW, document(plan))
    assert planned(known, document(plan)) == made, "the keys do not load enough"
    assert image(known) == before, "planning has changed the facts"
    states, rules = outcomes(state, plan)
    told = [one.code.value for one in made.violations]
    assert bool(states) == (not told), (plan, told, rules)
    beside(draw, known, plan, made, state, drained)
    if told:
        assert not made.changes
        assert made.inverse is None
        return made, rules
    way_back = done(known, made)
    assert state_of(known) in states, plan
    check_usage(known)
    check_closure(known, [*drained, *plan["drain"]])
    back = plan_undo(known, NOW, way_back)
    assert plan_back(known, way_back) == back, "the keys do not load enough"
    forth = done(known, back)
    assert image(known) == before
    after = done(known, plan_undo(known, NOW, forth))
    assert image(known) != before or not made.effects
    check_newcomer(draw, known, state, after)
    return made, rules


def beside(
    draw: random.Random,
    known: Facts,
    plan: Plan,
    made: Planned,
    state: State,
    drained: list[str],
) -> None:
    """A claim at a place that the plan does not touch changes nothing about the plan."""
    touched = {uuid for one in made.summary.places for uuid in [one.provider]}
    touched |= {move["from"][0] for move in plan["moves"]} | set(plan["delete"])
    touched |= {move["to"][0] for move in plan["moves"]} | set(plan["inventories"])
    free = [key for key in sorted(state["inventories"]) if key[0] not in touched]
    if free:
        other = facts_of(state, drained)
        claim(other, NEWCOMER, nested({draw.choice(free): 1}))
        again = plan_reshape(other, NOW, document(plan))
        assert (again.digest, again.violations) == (made.digest, made.violations)
    assert plan_reshape(known, NOW, document(plan)) == made


def check_usage(known: Facts) -> None:
    """What the inventories say is used is what the consumers have."""
    state = state_of(known)
    for uuid, held in known.inventories.items():
        for name, one in held.items():
            assert one.used == used(state, (uuid, name))


def check_closure(known: Facts, drained: list[str]) -> None:
    """Roots follow the tree, and so does what a drained provider closes."""
    for uuid, provider in known.providers.items():
        line = [provider]
        while line[-1].parent is not None:
            line.append(known.providers[line[-1].parent])
        closed = any(one.uuid in drained for one in line)
        assert provider.root == line[-1].uuid
        assert (provider.withheld is not None) == closed
        assert all(one.withheld == closed for one in known.inventories_of(uuid).values())


def check_newcomer(draw: random.Random, known: Facts, before: State, way_back: Inverse) -> None:
    """A claim that came in between keeps an undo from being done only if it does not fit."""
    now = state_of(known)
    places = sorted(now["inventories"])
    if not places:
        return
    place = draw.choice(places)
    claim(known, NEWCOMER, nested({place: draw.randint(1, 3)}))
    after = {**before, "consumers": {**before["consumers"], NEWCOMER: {place: amount_of(known)}}}
    made = plan_undo(known, NOW, way_back)
    present = state_of(known)
    written = {(one.provider, one.resource_class) for one in made.summary.places}
    allowed = max(beyond(present, place), beyond(before, place), 0)
    fits = place not in written or beyond(after, place) <= allowed
    assert (made.violations == ()) == fits, (place, made.violations)
    if fits:
        done(known, made)
        assert state_of(known) == after
    else:
        assert {(one.provider, one.resource_class) for one in made.violations} == {place}


def amount_of(known: Facts) -> int:
    """Return the only amount of the newcomer."""
    (amounts,) = known.consumers[NEWCOMER].allocations.values()
    (amount,) = amounts.values()
    return amount


def beyond(state: State, place: tuple[str, str]) -> float:
    """Return what is used beyond the capacity; without an inventory nothing is allowed."""
    figures = state["inventories"].get(place)
    if figures is None:
        return float("inf") if used(state, place) else 0.0
    return used(state, place) - (figures[TOTAL] - figures[RESERVED]) * figures[RATIO]


@seeds(10_000, 500)
def test_seeded_plans_agree_too(seeds: range) -> None:
    """In each chunk many plans are committed, and many rules and codes occur."""
    rules, codes, committed = Counter[str](), Counter[str](), 0
    for seed in seeds:
        made, refused = check(random.Random(seed))
        committed += not made.violations and bool(made.effects)
        rules.update(refused if made.violations else ())
        codes.update(one.code.value for one in made.violations)
    if len(seeds) > 100:
        assert committed > 100
        assert len(rules) > 15
        assert len(codes) > 20


BUGS: dict[str, tuple[Any, str, Any]] = {
    "all takes the units of those who stay": (totals, "_kept", lambda *_: 0),
    "unit sizes are not checked": (final_state, "_units", lambda _: ()),
    "excess may grow": (final_state, "excess_before", lambda *_: 99.0),
    "undo forgets what was in excess": (inverse, "excess_before", lambda *_: 0.0),
    "planning changes the facts": (planning, "_copied", lambda held: held),
    "the first place is taken": (
        planning,
        "fit",
        lambda items, _: [(one, one.options[0]) for one in items if one.options],
    ),
    "closure is not inherited": (shape, "_closes_itself", lambda _: True),
    "renamed classes are not conserved": (conservation, "_renamed", lambda _: {}),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with any of these faults the engine and the model differ soon."""
    where, name, fault = BUGS[bug]
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(AssertionError):
        for seed in range(3_000):
            check(random.Random(seed))
