"""Picks represent candidates exactly and take little memory."""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import islice, product
from random import Random

import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateQuery, Pick
from moorage.core.ledger.search import compact_candidates
from moorage.core.ledger.search.compact_candidates import CandidateBuilder, Picks
from moorage.core.ledger.search.groups import GroupPart, terms
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.whole import candidates

PROVIDERS = tuple(ProviderId(name) for name in "abc")
QUERIES = 250
PICKS_MAX = 100


def simple_candidate(each: list[GroupPart], pick: Pick) -> Candidate:
    """Return the candidate of a pick, without optimisations."""
    allocations: dict[ProviderId, dict[str, int]] = {}
    mappings: dict[str, list[ProviderId]] = {}
    for term, uuid in zip(each, pick, strict=True):
        for name, amount in term.resources.items():
            given = allocations.setdefault(uuid, {})
            given[name] = given.get(name, 0) + amount
        serving = mappings.setdefault(term.suffix, [])
        if uuid not in serving:
            serving.append(uuid)
    return Candidate(allocations, {suffix: tuple(by) for suffix, by in mappings.items()})


def without_mappings(candidate: Candidate) -> object:
    """Return the part of a candidate that different picks may have in common."""
    return world.plain(Candidate(candidate.allocations, {}))


@pytest.mark.parametrize("kept", [2, 4_096])
def test_a_pick_represents_one_candidate(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Different picks are different candidates, so picks may be compared instead."""
    monkeypatch.setattr(compact_candidates, "SUMS_MAX", kept)
    alike = judged = 0
    for number in range(QUERIES):
        query = world.some_query(Random(f"picks/{number}"), 5)
        each = terms(query.groups)
        made = list(islice(product(PROVIDERS, repeat=len(each)), PICKS_MAX))
        spelled = list(Picks(each, made))
        assert spelled == [simple_candidate(each, pick) for pick in made], query
        assert len(set(map(world.plain, spelled))) == len(made), query
        alike += len(set(map(without_mappings, spelled))) < len(made)
        judged += len(each) > 1
    assert judged > QUERIES // 3
    assert alike > 0, "no allocations were equal, so the mappings were not tested"


def test_groups_keep_their_order() -> None:
    """Groups, and the providers of each, are in the order of the query."""
    each = terms((group(VCPU=1, DISK_GB=5, MEMORY_MB=2), group("_b"), group("_a", VCPU=3)))
    a, b, c = PROVIDERS
    spelled = CandidateBuilder(each).candidate((b, a, b, c, a))
    assert list(spelled.mappings.items()) == [("", (b, a)), ("_b", (c,)), ("_a", (a,))]
    assert spelled.allocations == {
        b: {"VCPU": 1, "MEMORY_MB": 2},
        a: {"DISK_GB": 5, "VCPU": 3},
    }


def test_candidates_are_a_sequence() -> None:
    """Picks have a length, indexes, slices and equality like a list."""
    made = [(each,) for each in PROVIDERS]
    found = Picks(terms((group(VCPU=1),)), made)
    plain = [Candidate({each: {"VCPU": 1}}, {"": (each,)}) for each in PROVIDERS]
    assert (len(found), found[1], found[-1], found[1:]) == (3, plain[1], plain[2], plain[1:])
    assert found == plain and list(reversed(found)) == plain[::-1] and plain[2] in found
    assert found != plain[:2] and found != Picks(terms((group(VCPU=2),)), made)
    assert Picks([], []) == [] and not Picks([], [])


def memory_of(make: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes that the result of `make` takes, and the peak while it was made."""
    gc.collect()
    tracemalloc.start()
    made = make()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return held, peak


def test_many_candidates_take_little_memory() -> None:
    """An answer takes a tuple of four per candidate for four groups, and little to find."""
    builder = Builder()
    for host in range(4):
        builder.add(f"host{host}")
        for port in range(9):
            builder.add(f"host{host}port{port}", f"host{host}", NIC=1)
    query = CandidateQuery(
        tuple(group(f"_{number}", NIC=1) for number in range(4)), group_policy="isolate"
    )
    answers: list[CandidateAnswer] = []
    held, peak = memory_of(lambda: answers.append(candidates(builder.catalog, query)))
    (found,) = (answer.candidates for answer in answers)
    assert len(found) == 12_096
    assert held < 120 * len(found) and peak < held + 1_000_000
    spelled, _ = memory_of(lambda: list(found))
    assert spelled > 400 * len(found), "spelled out, candidates must take much more"
