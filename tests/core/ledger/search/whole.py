"""Searches in one piece: each runs to its end without pauses."""

from typing import TypeVar

from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import (
    CandidateAnswer,
    CandidateOrder,
    CandidateQuery,
    ProviderQuery,
    Start,
)
from moorage.core.ledger.search import Catalog, preferring, providers_in_order, searched
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.explain import Explanation, explaining
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATE_STEPS_MAX, CANDIDATES_MAX

T = TypeVar("T")


def to_end(work: Steps[T]) -> T:
    """Run work to its end; return its answer."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            answer: T = stop.value
            return answer


def candidates(
    catalog: Catalog,
    query: CandidateQuery,
    start: Start = Start(),  # noqa: B008 - it is frozen
    most: int = CANDIDATES_MAX,
    budget: Budget | None = None,
) -> CandidateAnswer:
    """As `searched`."""
    return to_end(searched(catalog, query, start, most, budget))


def preferred(
    catalog: Catalog,
    query: CandidateQuery,
    order: CandidateOrder,
    wanted: int,
    steps_max: int = CANDIDATE_STEPS_MAX,
) -> CandidateAnswer:
    """As `preferring`."""
    return to_end(preferring(catalog, query, order, wanted, steps_max))


def providers(catalog: Catalog, query: ProviderQuery) -> list[ProviderRecord]:
    """As `providers_in_order`."""
    return to_end(providers_in_order(catalog, query))


def explain(catalog: Catalog, query: CandidateQuery) -> Explanation:
    """As `explaining`."""
    return to_end(explaining(catalog, query))
