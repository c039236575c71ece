"""Claims choose in pieces: others change the catalog meanwhile, and no piece is a long one."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.requests import (
    CandidateAnswer,
    CandidateQuery,
    Order,
    Preference,
)
from moorage.core.ledger.search import Catalog, budget, claim_choice, preferring
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.explain import explaining
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CLAIM_STEPS_MAX
from tests.core.ledger.search import world
from tests.core.ledger.search.builder import Builder, group
from tests.core.ledger.search.changing import Others, rooted, stayed
from tests.core.ledger.search.naive import naive_candidates
from tests.core.ledger.search.whole import to_end
from tests.support.pieces import TooMuch, bounded

FLEETS = 60
PREFERENCES: tuple[Preference, ...] = ("random", "pack", "spread")


@pytest.mark.parametrize("seed", range(10))
def test_what_changes_during_a_choice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each candidate was right at some moment, and its providers exist; nothing hides all."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    changed = 0
    for number in range(FLEETS):
        random = Random(f"choice/{seed}/{number}")
        others = Others.some(random)
        records, catalog = others.records, others.catalog
        query = world.some_query(random, len(records))
        order, wanted = Order(random.choice(PREFERENCES), number), random.randint(1, 12)
        answer = others.during(preferring(catalog, query, order, wanted))
        found = [world.plain(each) for each in answer.candidates]
        moments = [naive_candidates(then, query) for then in others.past]
        where = f"Random('choice/{seed}/{number}'), {order}, {wanted}: {query}"
        assert len(set(found)) == len(found) <= wanted, where
        assert set(found) <= set().union(*moments), where
        named = {uuid for each in answer.candidates for by in each.mappings.values() for uuid in by}
        assert named <= others.records.keys(), where
        assert found or not answer.exhausted or not all(moments), where
        steady = {each for each in records if stayed(others.past, each)}
        always = set.intersection(*moments)
        assert found or not any(rooted(each, others.past, steady) for each in always), where
        changed += bool(found) and len(others.past) > 2
    assert changed > FLEETS // 10


def with_moved_room(pause: int, preference: Preference) -> CandidateAnswer:
    """Choose one of two hosts; in some rest the only room moves from the one to the other."""
    builder = Builder()
    builder.add("full", VCPU=Inventory(8, used=8))
    builder.add("free", VCPU=Inventory(8))
    query = CandidateQuery((group(VCPU=1),))
    search = preferring(builder.catalog, query, Order(preference), 1)
    for _ in range(pause):
        next(search)
    moved = {("full", "VCPU"): Inventory(8), ("free", "VCPU"): Inventory(8, used=8)}
    builder.catalog.apply(Changes(inventories=moved))  # type: ignore[arg-type] # names are UUIDs
    return to_end(search)


@pytest.mark.parametrize("preference", PREFERENCES)
def test_room_that_moves_is_found(preference: Preference, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for one at any moment: who chooses meanwhile finds it, in a second pass."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    answer = with_moved_room(1, preference)
    assert [[*each.allocations] for each in answer.candidates] == [["full"]]
    # The control: without a second pass there is nothing, and the answer admits it.
    monkeypatch.setattr(claim_choice, "PASSES_MAX", 1)
    answer = with_moved_room(1, preference)
    assert answer.candidates == [] and not answer.exhausted


def test_a_fleet_that_never_rests_ends_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds nothing while the catalog changes over and over gives up, and says so."""
    monkeypatch.setattr(budget, "PIECE_STEPS", 0)
    builder = Builder(chunk_rows=1)
    for number in range(20):
        builder.add(f"host{number}", VCPU=Inventory(8, used=8 * (number % 2)))
        builder.add(f"disk{number}", DISK_GB=8)
    query = CandidateQuery((group(VCPU=1, DISK_GB=1),))
    search, rests = preferring(builder.catalog, query, Order("pack"), 1), 0
    with pytest.raises(StopIteration) as end:
        while True:
            next(search)
            rests += 1
            changed = {(ProviderId("host0"), "VCPU"): Inventory(8, used=rests % 8)}
            builder.catalog.apply(Changes(inventories=changed))
    assert end.value.value.candidates == [] and not end.value.value.exhausted
    assert rests < 1_000


def hard(hosts: int) -> tuple[Catalog, CandidateQuery]:
    """Return hosts whose ports fit by every count, but in no combination."""
    builder = Builder()
    for host in range(hosts):
        builder.add(f"host{host}", VCPU=8)
        for port in range(40):
            kinds = {0: "X Y Z", 1: "X Y Z", 2: "X", 3: "Y"}.get(port, "W")
            builder.add(f"host{host}p{port}", f"host{host}", kinds, NIC=1)
    asked = (group(f"_{number}", kind, NIC=1) for number, kind in enumerate("XXYYZ" + "W" * 34))
    return builder.catalog, CandidateQuery(tuple(asked), group_policy="isolate")


def scattered(hosts: int) -> tuple[Catalog, CandidateQuery]:
    """Return hosts of many chunks: of two classes each has room for one."""
    builder = Builder(chunk_rows=4)
    for host in range(hosts):
        used = {"VCPU": 8 * (host % 2), "DISK_GB": 8 - 8 * (host % 2)}
        builder.add(f"host{host}", **{name: Inventory(8, used=n) for name, n in used.items()})
    return builder.catalog, CandidateQuery((group(VCPU=1, DISK_GB=1),))


def chosen(catalog: Catalog, query: CandidateQuery) -> Steps[Any]:
    """Choose as a claim does."""
    return preferring(catalog, query, Order("pack"), 1, CLAIM_STEPS_MAX)


PIECE_MOST = 5_000
"""Steps of one piece: of opening one of these trees, and of walking it to its end."""


@pytest.mark.parametrize("work", [chosen, explaining])
@pytest.mark.parametrize("question", [hard, scattered])
def test_no_piece_of_a_choice_is_long(
    question: Callable[[int], tuple[Catalog, CandidateQuery]],
    work: Callable[[Catalog, CandidateQuery], Steps[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a claim or an explanation has to try, others work in between."""
    catalog, query = question(60 if question is hard else 1_200)
    budgets: list[Budget] = []

    class Noted(Budget):
        def __init__(self, whole: int) -> None:
            super().__init__(whole)
            budgets.append(self)

    monkeypatch.setattr(claim_choice, "Budget", Noted)

    def steps() -> int:
        return sum(each.steps for each in budgets)

    to_end(bounded(work(catalog, query), steps, PIECE_MOST))
    assert steps() > 3 * PIECE_MOST
    # The control: without rests all of it is one piece.
    monkeypatch.setattr(budget, "PIECE_STEPS", 10**9)
    with pytest.raises(TooMuch):
        to_end(bounded(work(catalog, query), steps, PIECE_MOST))
