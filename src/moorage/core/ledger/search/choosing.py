"""The choice for a claim: a few candidates, those of the preferred trees first."""

from contextlib import suppress

import numpy as np

from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Order
from moorage.core.ledger.search.candidates import Search
from moorage.core.ledger.search.combine import Enough, Found
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.preference import Scorer, best_first

TREE_CANDIDATES_MAX = 4
"""Candidates of one tree among those that a claim may choose from."""


def preferred(
    fleet: Fleet,
    query: CandidateQuery,
    order: Order,
    wanted: int,
    steps_max: int | None = None,
) -> CandidateAnswer:
    """Find up to `wanted` candidates, the preferred trees first, without summaries.

    Of one tree at most `TREE_CANDIDATES_MAX` are given, because whoever takes one of them often
    takes from the others as well. The answer is empty only if there is no candidate at all, or
    not `exhausted`. The query's own limit has no influence.
    """
    found = Found(wanted, steps_max)
    search = Search(fleet, query, found)
    with suppress(Enough):
        _run(fleet, search, found, order, wanted)
    return CandidateAnswer(found.candidates, [], found.exhausted)


def _run(fleet: Fleet, search: Search, found: Found, order: Order, wanted: int) -> None:
    """Visit the anchors of all blocks, the preferred ones first. Raises Enough."""
    if not search.begin():
        return
    scorer = Scorer(order, {name for term in search.terms for name in term.resources})
    places = [(block, search.anchor_rows(block)) for block in fleet.blocks]
    places = [(block, rows) for block, rows in places if len(rows)]
    if not places:
        return
    rows = np.concatenate([rows for _, rows in places])
    owners = np.repeat(np.arange(len(places)), [len(rows) for _, rows in places])
    scores = np.concatenate([scorer.scores(block, rows) for block, rows in places])
    for place in best_first(scores, wanted):
        have = len(found.candidates)
        found.limit = min(wanted, have + TREE_CANDIDATES_MAX)
        try:
            search.visit(places[owners[place]][0], [int(rows[place])])
        except Enough:
            if not found.exhausted or len(found.candidates) >= wanted:
                raise
