"""Related groups on machines with many devices: what fits is found, and nothing else."""

from math import prod
from random import Random

import pytest
from msgspec.structs import replace

from moorage.core.ledger.requests import CandidateOrder, CandidateQuery, Group, Start
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine import walk
from moorage.core.ledger.search.groups import terms
from moorage.core.limits import CLAIM_STEPS_MAX, GROUPS_MAX
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.combine.machines import KINDS, Machines, planted, related
from tests.core.ledger.search.naive import can_give, naive_candidates
from tests.core.ledger.search.whole import candidates, explain, preferred

COMBINATIONS_MAX = 4_000
"""Combinations of providers up to which the naive search is asked."""

EASY_STEPS_MAX = 200_000
"""Steps in which every machine of these sizes is decided: a few tenths of a second."""


def small(name: str) -> tuple[Machines, CandidateQuery] | None:
    """Return small machines and a query; None: there are too many combinations to try all."""
    random = Random(name)
    machines = Machines(random)
    for _ in range(random.choice((1, 1, 2))):
        machines.machine(random.choice(KINDS), random.randint(1, 3))
    if random.random() < 0.3:
        machines.sharing()
    machines.use(random.choice((0.0, 0.3, 0.6)))
    query = related(random, machines, random.choice((0.0, 0.4, 0.9)))
    able = (
        sum(
            all(can_give(r, n, a) for n, a in term.resources.items())
            for r in machines.records.values()
        )
        for term in terms(query.groups)
    )
    return None if prod(able) > COMBINATIONS_MAX else (machines, query)


@pytest.mark.parametrize("seed", range(12))
def test_all_that_fits_is_found_and_nothing_else(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates, with and without a limit, claims and explanations agree with the naive search.

    Most searches remember dead ends from the first one on, as larger ones do later.
    """
    if seed % 4:
        monkeypatch.setattr(walk, "FORGIVEN", 0)
    answered = nothing = 0
    for number in range(60):
        name = f"related/{seed}/{number}"
        made = small(name)
        if made is None:
            continue
        machines, query = made
        catalog = world.fleet_of(machines.records, 1024)
        expected = naive_candidates(machines.records, query)
        answer = candidates(catalog, query)
        found = [world.plain(each) for each in answer.candidates]
        where = f"{name}: {query}"
        assert answer.exhausted and len(found) == len(set(found)), where
        assert set(found) == expected, where
        limited = candidates(catalog, replace(query, limit=2), Start(turn=number))
        few = {world.plain(each) for each in limited.candidates}
        assert len(few) == min(2, len(expected)) and few <= expected, where
        for order in (CandidateOrder("pack"), CandidateOrder("random", number)):
            chosen = preferred(catalog, query, order, 1, CLAIM_STEPS_MAX).candidates
            assert bool(chosen) == bool(expected), where
            assert {world.plain(each) for each in chosen} <= expected, where
        assert explain(catalog, query).found == bool(expected), where
        answered += bool(expected)
        nothing += not expected
    assert answered > 10 and nothing > 5


def large(name: str, size: int, sets: int, taken: int) -> tuple[Machines, CandidateQuery] | None:
    """Return a machine that can just serve a query, or nearly: `taken` units less."""
    random = Random(name)
    machines = Machines(random)
    host = machines.machine(random.choice(KINDS), size)
    query = planted(random, machines, host, sets)
    if not any(g.resources for g in query.groups) or len(query.groups) > GROUPS_MAX:
        return None
    for _ in range(taken):
        machines.use_one()
    return machines, query


@pytest.mark.parametrize(("size", "sets"), [(4, 4), (8, 8), (16, 12)])
@pytest.mark.parametrize("seed", range(2))
def test_a_hidden_solution_is_found(size: int, sets: int, seed: int) -> None:
    """A machine of any size that can just serve the query is found, in time and by a claim, too."""
    for number in range(50):
        made = large(f"planted/{size}/{sets}/{seed}/{number}", size, sets, 0)
        if made is None:
            continue
        machines, query = made
        where = f"planted/{size}/{sets}/{seed}/{number}: {query}"
        catalog, budget = world.fleet_of(machines.records, 1024), Budget()
        assert candidates(catalog, replace(query, limit=1), budget=budget).candidates, where
        assert budget.steps < EASY_STEPS_MAX, where
        order = CandidateOrder("random", number)
        assert preferred(catalog, query, order, 1, CLAIM_STEPS_MAX).candidates, where
        assert explain(catalog, query).found, where


@pytest.mark.parametrize(("size", "sets"), [(4, 4), (8, 8), (16, 12)])
def test_that_nothing_fits_is_proved(size: int, sets: int) -> None:
    """Where little is missing, the search is completed; explanations and claims agree with it."""
    lacking = 0
    for number in range(60):
        made = large(f"broken/{size}/{sets}/{number}", size, sets, 1 + number % 6)
        if made is None:
            continue
        machines, query = made
        where = f"broken/{size}/{sets}/{number}: {query}"
        catalog, budget = world.fleet_of(machines.records, 1024), Budget()
        answer = candidates(catalog, replace(query, limit=1), budget=budget)
        assert answer.exhausted and budget.steps < EASY_STEPS_MAX, where
        order = CandidateOrder("random", number)
        claimed = preferred(catalog, query, order, 1, CLAIM_STEPS_MAX)
        explained = explain(catalog, query)
        assert bool(claimed.candidates) == bool(answer.candidates) == explained.found, where
        lacking += not answer.candidates
    assert lacking > 3


def slices(gpus: int, each: int, pairs: int, trait: str = "GPU") -> tuple[Builder, CandidateQuery]:
    """Return a host with GPUs of some slices each, and a query for pairs of slices of one GPU."""
    builder = Builder()
    builder.add("host", VCPU=64)
    for gpu in range(gpus):
        builder.add(f"gpu{gpu}", "host", traits=trait)
        for number in range(each):
            builder.add(f"gpu{gpu}-{number}", f"gpu{gpu}", SLICE=1)
    groups: list[Group] = []
    for number in range(pairs):
        groups.append(group(f"_{number}", "GPU"))
        groups += [group(f"_{number}{letter}", SLICE=1) for letter in "ab"]
    subtrees = tuple(frozenset((f"_{n}", f"_{n}a", f"_{n}b")) for n in range(pairs))
    return builder, CandidateQuery(tuple(groups), "none", subtrees)


@pytest.mark.parametrize("policy", ["none", "isolate"])
@pytest.mark.parametrize(
    ("gpus", "each", "pairs"), [(6, 2, 4), (16, 8, 8), (16, 2, 16), (16, 3, 16)]
)
def test_pairs_of_slices(policy: str, gpus: int, each: int, pairs: int) -> None:
    """Pairs of slices, each of one GPU, are found at once: candidates and claims."""
    builder, query = slices(gpus, each, pairs)
    budget = Budget()
    query = replace(query, group_policy=policy)
    answer = candidates(builder.catalog, replace(query, limit=100), budget=budget)
    assert len(answer.candidates) == 100 and answer.exhausted and budget.steps < 50_000
    for candidate in answer.candidates:
        for number in range(pairs):
            (gpu,) = candidate.mappings[f"_{number}"]
            for letter in "ab":
                assert candidate.mappings[f"_{number}{letter}"][0].startswith(f"{gpu}-")
    chosen = preferred(builder.catalog, query, CandidateOrder(), 1, CLAIM_STEPS_MAX)
    assert len(chosen.candidates) == 1


@pytest.mark.parametrize(("gpus", "each", "pairs"), [(6, 3, 7), (16, 3, 17)])
def test_one_pair_too_many(gpus: int, each: int, pairs: int) -> None:
    """Slices enough, but one pair more than GPUs have pairs of them: the search proves that."""
    builder, query = slices(gpus, each, pairs)
    budget = Budget()
    answer = candidates(builder.catalog, replace(query, limit=1), budget=budget)
    assert not answer.candidates and answer.exhausted and budget.steps < EASY_STEPS_MAX
    explained = explain(builder.catalog, query)
    assert not explained.found and explained.exhausted
    assert explained.without == ["same_subtree", "required"]


def test_a_search_takes_the_steps_that_it_has() -> None:
    """A tree that is given up is tried again, with more steps, until all are used up."""
    name = "broken/8/8/94"
    made = large(name, 8, 8, 3)
    assert made is not None
    catalog = world.fleet_of(made[0].records, 1024)
    query = replace(made[1], limit=1)
    budget = Budget(anchor=20)
    assert candidates(catalog, query, budget=budget).exhausted
    budget = Budget(whole=1_000, anchor=20)
    answer = candidates(catalog, query, budget=budget)
    assert not answer.exhausted and budget.steps > 1_000


def test_the_next_search_tries_another_order() -> None:
    """Searches that run out of steps are followed by others that find what is there."""
    for number in range(200):
        made = large(f"planted/8/8/0/{number}", 8, 8, 0)
        if made is None:
            continue
        catalog, query = world.fleet_of(made[0].records, 1024), replace(made[1], limit=1)
        needed = Budget()
        candidates(catalog, query, budget=needed)
        if needed.steps > 6_000:
            break
    else:
        raise AssertionError("no query is hard enough")
    start, turns = Start(), set[int]()
    for _ in range(40):
        turns.add(start.turn)
        answer = candidates(catalog, query, start, budget=Budget(whole=needed.steps // 2))
        start = answer.then
        if answer.candidates:
            break
    assert answer.candidates and len(turns) > 1
