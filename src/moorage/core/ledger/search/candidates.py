"""One question for allocation candidates, from beginning to end.

Blocks are visited one after another. Every anchor gives one candidate before any gives a second
one, so that a limit spreads over the fleet.
"""

from collections.abc import Iterator
from itertools import chain

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateQuery
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.fleet import Fleet


def candidates(
    fleet: Fleet, query: CandidateQuery, start: int = 0, budget: Budget | None = None
) -> CandidateAnswer:
    """Find where all groups of a query can be served together.

    Args:
        fleet: The providers as they are now.
        query: What is asked for; every class and trait in it exists.
        start: Where to begin when `limit` cuts, so that askers do not all get the same. The same
            start gives the same answer; without a limit it has no influence.
        budget: The steps that it may take.
    """
    search = Search(fleet, query, budget)
    found: list[Candidate] = []
    if search.begin():
        blocks = fleet.blocks
        if query.limit is None or not blocks:
            for block in blocks:
                for row in search.anchor_rows(block).tolist():
                    found += search.open(block, row)
        else:
            found = _from(fleet, search, start, query.limit)
    return CandidateAnswer(found, _summaries(fleet, query, found), search.budget.complete)


def _from(fleet: Fleet, search: Search, start: int, limit: int) -> list[Candidate]:
    """Visit all blocks from a place that moves with `start`, then put them in order."""
    blocks = fleet.blocks
    rounds, first = divmod(start, len(blocks))
    rows = search.anchor_rows(blocks[first]).tolist()
    # The next round begins where this one is likely to end.
    cut = rounds * limit % len(rows) if rows else 0
    found: list[Candidate] = []
    turn = 0

    def places() -> Iterator[Iterator[Candidate]]:
        nonlocal turn
        yield from (search.open(blocks[first], row) for row in rows[cut:])
        for block in blocks[first + 1 :]:
            yield from (search.open(block, row) for row in search.anchor_rows(block).tolist())
        turn = len(found)
        for block in blocks[:first]:
            yield from (search.open(block, row) for row in search.anchor_rows(block).tolist())
        yield from (search.open(blocks[first], row) for row in rows[:cut])

    for candidate in chain.from_iterable(places()):
        found.append(candidate)
        if len(found) == limit:
            break
    return found[turn:] + found[:turn]


def _summaries(fleet: Fleet, query: CandidateQuery, found: list[Candidate]) -> list[ProviderId]:
    """Return the providers in the candidates or, with a nested query, their whole trees."""
    shown: dict[ProviderId, object] = {}
    for candidate in found:
        shown.update(candidate.allocations)
    if not query.nested:
        return list(shown)
    whole: dict[ProviderId, None] = {}
    for uuid in shown:
        if uuid not in whole:
            whole.update(dict.fromkeys(fleet.tree_of(uuid)))
    return list(whole)
