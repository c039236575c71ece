"""One query for allocation candidates, from start to end."""

from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Pick, Start
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.compact_candidates import Picks
from moorage.core.ledger.search.round_robin import RoundRobin
from moorage.core.ledger.search.steps import Steps

PIECE_CANDIDATES = 1_000
"""Candidates or providers that are sorted in one piece."""


def searched(
    catalog: Catalog, query: CandidateQuery, start: Start, most: int, budget: Budget | None = None
) -> Steps[CandidateAnswer]:
    """Find where all groups of a query can be served together, in pieces.

    Between two pieces the catalog may change: each candidate was right at some time during the
    search. Every tree gives one candidate before any tree gives a second one, and so on. The same
    start on the same catalog gives the same answer. If nothing is cut, every start gives the same
    candidates, in the same order unless a sharing provider serves any of them.

    While nothing is found, trees that took too many steps are tried again with more of them, until
    the steps of the whole search are used up.

    Args:
        catalog: The providers.
        query: The request; every class and trait in it exists.
        start: Where to start; an answer has the start for the next one.
        most: The most candidates in an answer, also without `limit`.
        budget: The steps that the search may take.
    """
    budget = budget or Budget()
    budget.turn = start.turn
    wanted = most if query.limit is None else min(query.limit, most)
    capped = query.limit is None or query.limit > most
    while True:
        search = Search(catalog, query, budget)
        rounds = RoundRobin(catalog, search, query.nested, wanted, sure=capped)
        yield from rounds.run(start)
        if rounds.found or not budget.must_try_harder:
            break
        budget.try_harder()
    found, shown = rounds.found, list(rounds.shown.values())
    if found and rounds.then is None and start != Start(turn=start.turn):
        found = _from_the_first(rounds)
        shown = yield from _in_order(found, rounds, query.nested)
    capped = capped and rounds.then is not None and len(found) == most
    then = replace(rounds.then or start, turn=budget.turn + (not found))
    every = Picks(search.terms, found)
    return CandidateAnswer(every, shown, budget.complete, capped, then, found)


def _from_the_first(rounds: RoundRobin) -> list[Pick]:
    """Return the candidates in the order of a search that starts at the first row."""
    found: list[Pick] = []
    ends = [first for first, _ in rounds.spans[1:]] + [len(rounds.found)]
    for (first, turn), end in zip(rounds.spans, ends, strict=True):
        found += rounds.found[turn:end]
        found += rounds.found[first:turn]
    return found


def _in_order(found: list[Pick], rounds: RoundRobin, nested: bool) -> Steps[list[ProviderRecord]]:
    """Return the summaries of providers in the order of the candidates."""
    shown = rounds.shown
    trees: dict[ProviderId, list[ProviderRecord]] = {}
    for number, (uuid, record) in enumerate(shown.items()):
        trees.setdefault(record.provider.root if nested else uuid, []).append(record)
        if number % PIECE_CANDIDATES == 0:
            yield
    records: list[ProviderRecord] = []
    for number, pick in enumerate(found):
        for uuid in rounds.giving(pick):
            records += trees.pop(shown[uuid].provider.root if nested else uuid, ())
        if number % PIECE_CANDIDATES == 0:
            yield
    return records
