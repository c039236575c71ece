"""The choice for a claim: a few candidates, those of the preferred trees first."""

from itertools import islice

import numpy as np

from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateQuery, Order
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.preference import Scorer, best_first
from moorage.core.limits import CANDIDATE_STEPS_MAX

TREE_CANDIDATES_MAX = 4
"""Candidates of one tree among those that a claim may choose from."""


def preferred(
    fleet: Fleet,
    query: CandidateQuery,
    order: Order,
    wanted: int,
    steps_max: int = CANDIDATE_STEPS_MAX,
) -> CandidateAnswer:
    """Find up to `wanted` candidates, the preferred trees first, without summaries.

    Of one tree at most `TREE_CANDIDATES_MAX` are given, because whoever takes one of them often
    takes from the others as well. The answer is empty only if there is no candidate at all, or
    not `exhausted`. The query's own limit has no influence.
    """
    search = Search(fleet, query, Budget(steps_max))
    found = _run(fleet, search, order, wanted) if search.begin() else []
    return CandidateAnswer(found, [], search.budget.complete)


def _run(fleet: Fleet, search: Search, order: Order, wanted: int) -> list[Candidate]:
    """Open the anchors of all blocks, the preferred ones first."""
    scorer = Scorer(order, {name for term in search.terms for name in term.resources})
    places = [(block, search.anchor_rows(block)) for block in fleet.blocks]
    places = [(block, rows) for block, rows in places if len(rows)]
    if not places:
        return []
    rows = np.concatenate([rows for _, rows in places])
    owners = np.repeat(np.arange(len(places)), [len(rows) for _, rows in places])
    scores = np.concatenate([scorer.scores(block, rows) for block, rows in places])
    found: list[Candidate] = []
    for place in best_first(scores, wanted):
        opened = search.open(places[owners[place]][0], int(rows[place]))
        found += islice(opened, min(TREE_CANDIDATES_MAX, wanted - len(found)))
        if len(found) == wanted or search.budget.over:
            break
    return found
