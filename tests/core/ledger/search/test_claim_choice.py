"""Claims choose in short pieces, between which the catalog may change."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import (
    CandidateAnswer,
    CandidateOrder,
    CandidateQuery,
    Preference,
)
from moorage.core.ledger.search import Catalog, budget, claim_choice, preferring
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.explain import explaining
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CLAIM_STEPS_MAX
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.changing import ConcurrentWriter, is_steady, is_unchanged
from tests.core.ledger.search.naive import naive_candidates
from tests.core.ledger.search.whole import to_end
from tests.support.pieces import TooMuch, bounded

FLEETS = 60
PREFERENCES: tuple[Preference, ...] = ("random", "pack", "spread")


@pytest.mark.parametrize("seed", range(10))
def test_changes_during_a_choice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each candidate was right at some time; steady candidates make an answer non-empty."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    changed = 0
    for number in range(FLEETS):
        random = Random(f"choice/{seed}/{number}")
        writer = ConcurrentWriter.of_random_catalog(random)
        records, catalog = writer.records, writer.catalog
        query = world.some_query(random, len(records))
        order, wanted = CandidateOrder(random.choice(PREFERENCES), number), random.randint(1, 12)
        answer = writer.during(preferring(catalog, query, order, wanted))
        found = [world.plain(each) for each in answer.candidates]
        moments = [naive_candidates(then, query) for then in writer.past]
        where = f"Random('choice/{seed}/{number}'), {order}, {wanted}: {query}"
        assert len(set(found)) == len(found) <= wanted, where
        assert set(found) <= set().union(*moments), where
        named = {uuid for each in answer.candidates for by in each.mappings.values() for uuid in by}
        assert named <= writer.records.keys(), where
        assert found or not answer.exhausted or not all(moments), where
        steady = {each for each in records if is_unchanged(writer.past, each)}
        always = set.intersection(*moments)
        assert found or not any(is_steady(each, writer.past, steady) for each in always), where
        changed += bool(found) and len(writer.past) > 2
    assert changed > FLEETS // 10


def choose_while_room_moves(pause: int, preference: Preference) -> CandidateAnswer:
    """Choose one of two hosts; after `pause` pieces the only room moves to the other host."""
    builder = Builder()
    builder.add("full", VCPU=Inventory(8, used=8))
    builder.add("free", VCPU=Inventory(8))
    query = CandidateQuery((group(VCPU=1),))
    search = preferring(builder.catalog, query, CandidateOrder(preference), 1)
    for _ in range(pause):
        next(search)
    moved = {("full", "VCPU"): Inventory(8), ("free", "VCPU"): Inventory(8, used=8)}
    builder.catalog.apply(Changes(inventories=moved))  # type: ignore[arg-type] # names are UUIDs
    return to_end(search)


@pytest.mark.parametrize("preference", PREFERENCES)
def test_room_that_moves_is_found(preference: Preference, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one host has room at any time, the choice finds it in a second pass."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    answer = choose_while_room_moves(1, preference)
    assert [[*each.allocations] for each in answer.candidates] == [["full"]]
    # Without a second pass there is nothing, and the answer is not exhausted.
    monkeypatch.setattr(claim_choice, "PASSES_MAX", 1)
    answer = choose_while_room_moves(1, preference)
    assert answer.candidates == [] and not answer.exhausted


def test_a_choice_gives_up_if_the_catalog_keeps_changing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice gives up, with an answer that is not exhausted, if the catalog keeps changing."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    builder = Builder(chunk_rows=1)
    for number in range(20):
        builder.add(f"host{number}", VCPU=Inventory(8, used=8 * (number % 2)))
        builder.add(f"disk{number}", DISK_GB=8)
    query = CandidateQuery((group(VCPU=1, DISK_GB=1),))
    search, rests = preferring(builder.catalog, query, CandidateOrder("pack"), 1), 0
    with pytest.raises(StopIteration) as end:
        while True:
            next(search)
            rests += 1
            changed = {(ProviderId("host0"), "VCPU"): Inventory(8, used=rests % 8)}
            builder.catalog.apply(Changes(inventories=changed))
    assert end.value.value.candidates == [] and not end.value.value.exhausted
    assert rests < 1_000


def hard_query(hosts: int) -> tuple[Catalog, CandidateQuery]:
    """Return hosts whose ports suffice by every count, but fit in no combination."""
    builder = Builder()
    for host in range(hosts):
        builder.add(f"host{host}", VCPU=8)
        for port in range(40):
            kinds = {0: "X Y Z", 1: "X Y Z", 2: "X", 3: "Y"}.get(port, "W")
            builder.add(f"host{host}p{port}", f"host{host}", kinds, NIC=1)
    asked = (group(f"_{number}", kind, NIC=1) for number, kind in enumerate("XXYYZ" + "W" * 34))
    return builder.catalog, CandidateQuery(tuple(asked), group_policy="isolate")


def scattered_query(hosts: int) -> tuple[Catalog, CandidateQuery]:
    """Return hosts in many chunks, each with room for only one of two classes."""
    builder = Builder(chunk_rows=4)
    for host in range(hosts):
        used = {"VCPU": 8 * (host % 2), "DISK_GB": 8 - 8 * (host % 2)}
        builder.add(f"host{host}", **{name: Inventory(8, used=n) for name, n in used.items()})
    return builder.catalog, CandidateQuery((group(VCPU=1, DISK_GB=1),))


def choose(catalog: Catalog, query: CandidateQuery) -> Steps[Any]:
    """Choose as claims do."""
    return preferring(catalog, query, CandidateOrder("pack"), 1, CLAIM_STEPS_MAX)


PIECE_MOST = 5_000
"""Most steps of one piece, enough to open one of these trees and to search it completely."""


@pytest.mark.parametrize("work", [choose, explaining])
@pytest.mark.parametrize("question", [hard_query, scattered_query])
def test_no_piece_of_a_choice_is_long(
    question: Callable[[int], tuple[Catalog, CandidateQuery]],
    work: Callable[[Catalog, CandidateQuery], Steps[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hard choice or explanation consists of short pieces, so that others can work."""
    catalog, query = question(60 if question is hard_query else 1_200)
    budgets: list[Budget] = []

    class RecordingBudget(Budget):
        def __init__(self, whole: int) -> None:
            super().__init__(whole)
            budgets.append(self)

    monkeypatch.setattr(claim_choice, "Budget", RecordingBudget)

    def steps() -> int:
        return sum(each.steps for each in budgets)

    to_end(bounded(work(catalog, query), steps, PIECE_MOST))
    assert steps() > 3 * PIECE_MOST
    # With unlimited pieces, `bounded` detects the long piece.
    monkeypatch.setattr(budget, "PIECE_STEPS", 10**9)
    with pytest.raises(TooMuch):
        to_end(bounded(work(catalog, query), steps, PIECE_MOST))
