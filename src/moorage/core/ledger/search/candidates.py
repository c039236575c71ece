"""One question for allocation candidates, from beginning to end."""

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Pick, Start
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.picks import Picks
from moorage.core.ledger.search.rounds import Rounds
from moorage.core.ledger.search.steps import Steps, to_end
from moorage.core.limits import CANDIDATES_MAX

PIECE_CANDIDATES = 1_000
"""Candidates or providers that are put in order in one go."""


def candidates(
    fleet: Fleet,
    query: CandidateQuery,
    start: Start = Start(),  # noqa: B008 - it is frozen
    most: int = CANDIDATES_MAX,
    budget: Budget | None = None,
) -> CandidateAnswer:
    """Find where all groups of a query can be served together; as `searched`, all at once."""
    return to_end(searched(fleet, query, start, most, budget))


def searched(
    fleet: Fleet, query: CandidateQuery, start: Start, most: int, budget: Budget | None = None
) -> Steps[CandidateAnswer]:
    """Find where all groups of a query can be served together, in pieces.

    Between two pieces the fleet may change: each candidate was right at some time in between. Every
    tree gives one candidate before any gives a second one, and so on. The same start on the same
    fleet gives the same answer. If nothing is cut, every start gives the same candidates; their
    order is the same, too, unless a sharing provider serves any of them.

    Args:
        fleet: The providers as they are now.
        query: What is asked for; every class and trait in it exists.
        start: Where to begin; an answer says where to begin the next one.
        most: How many candidates an answer has at most, also without `limit`.
        budget: The steps that it may take.
    """
    search = Search(fleet, query, budget)
    wanted = most if query.limit is None else min(query.limit, most)
    capped = query.limit is None or query.limit > most
    rounds = Rounds(fleet, search, query.nested, wanted, sure=capped)
    yield from rounds.run(start)
    found, shown = rounds.found, list(rounds.shown.values())
    if found and rounds.then is None and start != Start():
        found = _from_the_first(rounds)
        shown = yield from _in_order(found, rounds, query.nested)
    capped = capped and rounds.then is not None and len(found) == most
    then = start if rounds.then is None else rounds.then
    every = Picks(search.terms, found)
    return CandidateAnswer(every, shown, search.budget.complete, capped, then, found)


def _from_the_first(rounds: Rounds) -> list[Pick]:
    """Return what was found as if the search had begun at the first row."""
    found: list[Pick] = []
    ends = [first for first, _ in rounds.spans[1:]] + [len(rounds.found)]
    for (first, turn), end in zip(rounds.spans, ends, strict=True):
        found += rounds.found[turn:end]
        found += rounds.found[first:turn]
    return found


def _in_order(found: list[Pick], rounds: Rounds, nested: bool) -> Steps[list[ProviderRecord]]:
    """Return what is shown of providers in the order in which candidates need it."""
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
