"""Explanations agree with the search, and their sentences are right in small catalogs."""

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search import budget
from moorage.core.ledger.search.conditions import conditions
from moorage.core.ledger.search.explain import Explanation, explaining
from moorage.core.ledger.search.groups import rows_that_serve, terms
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder
from tests.core.ledger.search.changing import ConcurrentWriter
from tests.core.ledger.search.naive import naive_candidates
from tests.core.ledger.search.whole import candidates, explain

SEEDS = 20
QUESTIONS = 100


def without_condition(query: CandidateQuery, name: str) -> CandidateQuery:
    """Return the query without one condition."""
    if name == "group_policy":
        return replace(query, group_policy="none")
    if name == "same_subtree":
        return replace(query, same_subtree=())
    if name == "root_required":
        return replace(query, root_traits=TraitFilter())
    changes = {
        "required": lambda g: {"traits": TraitFilter((), g.traits.forbidden)},
        "forbidden": lambda g: {"traits": TraitFilter(g.traits.required)},
        "member_of": lambda _: {"aggregates": AggregateFilter()},
        "in_tree": lambda _: {"in_tree": None},
    }
    return replace(query, groups=tuple(replace(g, **changes[name](g)) for g in query.groups))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_explanations_agree_with_candidates(seed: int) -> None:
    """`found` is true exactly if there are candidates; then no step has 0 providers left."""
    nothing = 0
    for number in range(QUESTIONS):
        random = Random(f"explain/{seed}/{number}")
        records = world.some_fleet(random, random.randint(0, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        query = world.some_query(random, len(records))
        where = f"Random('explain/{seed}/{number}'): {query}"
        explanation = explain(catalog, query)
        assert explanation.exhausted, where
        assert explanation.found == bool(candidates(catalog, query).candidates), where
        for part in explanation.parts:
            left = [step.left for step in part.steps]
            assert left[0] == len(records) and left == sorted(left, reverse=True), where
            assert (left[-1] == 0) == (part.nearest is not None), where
        trees = [step.left for step in explanation.trees]
        assert trees == sorted(trees, reverse=True), where
        empty = any(part.nearest for part in explanation.parts) or 0 in trees
        assert explanation.found == (explanation.nearest is None), where
        assert not (explanation.found and (empty or explanation.without)), where
        for name in explanation.without:
            assert candidates(catalog, without_condition(query, name)).candidates, where
        nothing += not explanation.found
    assert QUESTIONS * 0.2 < nothing < QUESTIONS * 0.95


@pytest.mark.parametrize("seed", range(5))
def test_conditions_are_those_of_the_search(seed: int) -> None:
    """The providers that meet all conditions are those that serve in the search."""
    for number in range(100):
        random = Random(f"conditions/{seed}/{number}")
        records = world.some_fleet(random, random.randint(1, 10))
        catalog = world.fleet_of(records, random.choice((1, 4, 1024)))
        for term in terms(world.some_query(random, len(records) - 1).groups):
            tree = term.group.in_tree
            place = None if tree is None else catalog.places[tree]
            for chunk in catalog.chunks:
                met = chunk.here.copy()
                for condition in conditions(term, place):
                    rows = condition.rows(chunk)
                    met &= np.zeros_like(met) if rows is None else rows
                serving = rows_that_serve(chunk, term, place).at_home
                expected = np.zeros_like(met) if serving is None else serving
                assert (met == expected).all(), f"Random('conditions/{seed}/{number}'): {term}"


def explained(builder: Builder, *groups: Group, **wide: Any) -> Explanation:
    """Explain a query."""
    return explain(builder.catalog, CandidateQuery(groups, **wide))


def rack() -> Builder:
    """Return two hosts with a card each, in aggregates a and b; only the first card is fast."""
    builder = Builder()
    for number, used in ((1, 2), (2, 3)):
        builder.add(
            f"host{number}",
            aggregates="ab"[number - 1],
            traits="" if number == 1 else "QUIET",
            VCPU=Inventory(4, used=used, max_unit=3),
            DISK_GB=10,
        )
        builder.add(f"card{number}", f"host{number}", "FAST" if number == 1 else "", FPGA=1)
    return builder


ANYTHING = Group("", {"VCPU": 1})


@pytest.mark.parametrize(
    ("groups", "wide", "sentence"),
    [
        (
            [Group("", {"VCPU": 3})],
            {},
            "VCPU: the freest of the 2 nearest providers has 2 of the required 3.",
        ),
        (
            [Group("", {"VCPU": 4})],
            {},
            "VCPU: the 2 nearest providers do not admit 4 by the unit sizes.",
        ),
        ([Group("", {"GPU": 1})], {}, "GPU: no provider offers it."),
        (
            [Group("_A", {"VCPU": 1}, TraitFilter((frozenset({"FAST"}),)))],
            {},
            "Group _A: the 2 nearest providers do not meet the condition: has FAST.",
        ),
        (
            [Group("_A", {"FPGA": 1}, TraitFilter((), frozenset({"FAST"})), in_tree="host1")],
            {},
            "Group _A: the nearest provider does not meet the condition: is without FAST; 1 other "
            "misses only the condition: is in the tree of host1.",
        ),
        (
            [Group("", {"VCPU": 2}, aggregates=AggregateFilter((frozenset({"b"}),)))],
            {},
            "VCPU: the nearest provider has 1 of the required 2; 1 other misses only the "
            "condition: is in aggregate b.",
        ),
        (
            [ANYTHING],
            {"root_traits": TraitFilter((frozenset({"LOUD"}),))},
            "It would fit if you dropped root_required.",
        ),
        (
            [Group("_A", {"VCPU": 1}), Group("_B", {"DISK_GB": 1})],
            {"group_policy": "isolate"},
            "It would fit if you dropped group_policy.",
        ),
        (
            [Group("_A", {"FPGA": 1}), Group("_B", {"FPGA": 1})],
            {},
            "2 trees can serve each part alone, but none can serve group _A and group _B together; "
            "each of these needs FPGA.",
        ),
        (
            [Group(f"_{number}", {"VCPU": 1}) for number in range(3)],
            {},
            "2 trees can serve each part alone, but none can serve all of them together; "
            "each of these needs VCPU.",
        ),
        (
            [
                *(Group(f"_{number}", {"DISK_GB": 2}) for number in range(6)),
                Group("_A", {"FPGA": 1}),
            ],
            {},
            "2 trees can serve each part alone, but none can serve group _0, group _1, group _2 "
            "and 3 more together; each of these needs DISK_GB.",
        ),
        (
            [
                Group("", {"VCPU": 2, "DISK_GB": 1}),
                Group("_A", {"FPGA": 1}),
                Group("_B", {"VCPU": 2}),
            ],
            {},
            "1 tree can serve each part alone, but none can serve VCPU and group _B together; "
            "each of these needs VCPU.",
        ),
        (
            [
                Group("", {"VCPU": 2}),
                Group("_A", {"FPGA": 1}, in_tree="host2"),
            ],
            {},
            "No single tree serves every part; the best, host1, serves 1 of 2 and lacks _A.",
        ),
        (
            [Group("", {"VCPU": 1, "FPGA": 1}, TraitFilter((frozenset({"LOUD"}),)))],
            {},
            "It would fit if you dropped required.",
        ),
    ],
)
def test_sentences(groups: list[Any], wide: dict[str, Any], sentence: str) -> None:
    """The sentence names the nearest condition with its figures."""
    explanation = explained(rack(), *groups, **wide)
    assert not explanation.found
    assert explanation.nearest == sentence


@pytest.mark.parametrize("seed", range(8))
def test_changes_during_an_explanation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation was right at some time, even if the catalog changes between its pieces."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    changed = 0
    for number in range(QUESTIONS):
        random = Random(f"explaining/{seed}/{number}")
        writer = ConcurrentWriter.of_random_catalog(random)
        query = world.some_query(random, len(writer.records))
        explanation = writer.during(explaining(writer.catalog, query))
        moments = [bool(naive_candidates(then, query)) for then in writer.past]
        where = f"Random('explaining/{seed}/{number}'): {query}"
        assert explanation.found or not explanation.exhausted or not all(moments), where
        assert any(moments) or not explanation.found, where
        for part in explanation.parts:
            left = [step.left for step in part.steps]
            assert left == sorted(left, reverse=True), where
        changed += len(writer.past) > 2
    assert changed > QUESTIONS // 6


def test_steps_of_a_class() -> None:
    """Offering a class, admitting the amount and having room are separate steps."""
    builder = Builder()
    builder.add("none")
    builder.add("small", VCPU=Inventory(4, max_unit=1))
    builder.add("full", VCPU=Inventory(4, used=3))
    builder.add("good", VCPU=4)
    explanation = explained(builder, Group("", {"VCPU": 2}))
    assert [(step.condition, step.left) for step in explanation.parts[0].steps] == [
        ("exists", 4),
        ("offers VCPU", 3),
        ("admits 2 VCPU in one piece", 2),
        ("has room for 2 VCPU", 1),
    ]
    assert explanation.found and explanation.nearest is None and explanation.trees[-1].left == 1


def test_unit_sizes_and_several_conditions() -> None:
    """Unfit unit sizes are reported as such, and so are several missed conditions."""
    builder = Builder()
    builder.add("host", VCPU=Inventory(8, step_size=4))
    assert explained(builder, Group("", {"VCPU": 2})).nearest == (
        "VCPU: the nearest provider does not admit 2 by the unit sizes."
    )
    fast = TraitFilter((frozenset({"FAST"}),))
    explanation = explained(builder, Group("_A", {"VCPU": 2}, fast)).nearest
    assert explanation is not None and "2 conditions are missed" in explanation


def test_an_empty_fleet() -> None:
    """The explanation of an empty catalog says that there are no providers."""
    explanation = explained(Builder(), ANYTHING)
    assert explanation.nearest == "there are no providers."
