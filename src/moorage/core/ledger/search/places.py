"""Where a query fits: the first trees by name, and what would be left there.

Anchors are opened in the order of their names until enough of them have given a candidate. The
other anchors are only counted: for most queries each of them has a candidate, see `Fitting.exact`.
"""

from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice

from msgspec import Struct

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import shown_capacity
from moorage.core.ledger.requests import Candidate, CandidateQuery
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.steps import Steps

A_STEP = 256
"""Names that are read in one piece."""

OPENED_MAX = 200
"""Anchors that are opened, if the first ones have no candidate."""


class Share(Struct, frozen=True):
    """What a candidate takes from one provider, and what would be left there, by class."""

    provider: ProviderId
    name: str
    takes: dict[str, int]
    left: dict[str, int]


class FittingPlace(Struct, frozen=True):
    """A tree where the query fits: its root, and the shares of its first candidate."""

    root: ProviderId
    name: str
    shares: tuple[Share, ...]


class Fitting(Struct, frozen=True):
    """The first trees by name where a query fits, and how many more there are.

    `exact` False: `more` are trees of which each part of the query is served, but which may be
    unable to serve all parts together.
    """

    places: tuple[FittingPlace, ...]
    more: int
    exact: bool


def fitting(catalog: Catalog, query: CandidateQuery, most: int) -> Steps[Fitting]:
    """Return up to `most` trees where the query fits; every class and trait in it exists.

    It pauses after every few names and anchors. The catalog may change in between: each place is as
    of a different moment, as in an explanation.
    """
    search = Search(catalog, query, Budget())
    search.budget.rested()
    if not (yield from search.beginning()):
        return Fitting((), 0, exact=True)
    first, count = yield from _first_anchors(catalog, search)
    places: list[FittingPlace] = []
    tried = 0
    for uuid in first:
        if len(places) == most or search.budget.over:
            break
        tried += 1
        found = yield from _opened(catalog, search, uuid)
        if found is not None:
            places.append(found)
        yield
    return Fitting(tuple(places), count - tried, exact=_is_exact(catalog, search, query))


def _first_anchors(catalog: Catalog, search: Search) -> Steps[tuple[list[ProviderId], int]]:
    """Return the first anchors by name, and how many anchors there are."""
    first: list[tuple[str, ProviderId]] = []
    count, applied = 0, catalog.applied
    for chunk in list(catalog.chunks):
        if catalog.applied != applied:
            applied = catalog.applied
            search.again()
        rows = iter(search.anchor_rows(chunk).tolist())
        while some := list(islice(rows, A_STEP)):
            # A row may have been cleared at a pause.
            records = [one for row in some if (one := chunk.records[row]) is not None]
            count += len(records)
            named = [(one.provider.name, one.provider.uuid) for one in records]
            first = nsmallest(OPENED_MAX, [*first, *named])
            yield
    return [uuid for _, uuid in first], count


def _opened(catalog: Catalog, search: Search, root: ProviderId) -> Steps[FittingPlace | None]:
    """Return a tree with its first candidate; None: it has none, or not any more."""
    search.again()  # it may have changed since it was counted
    place = catalog.places.get(root)
    if place is None or place[1] not in search.anchor_rows(place[0]):
        return None
    for candidate in search.open(*place):
        if candidate is not None:
            record = catalog.record(root)
            shares = tuple(_shares(catalog, candidate))
            return None if record is None else FittingPlace(root, record.provider.name, shares)
        yield
        search.budget.rested()
    return None


def _shares(catalog: Catalog, candidate: Candidate) -> Iterator[Share]:
    for uuid, takes in candidate.allocations.items():
        record = catalog.record(uuid)
        if record is None:  # deleted meanwhile
            continue
        held = record.inventories
        left = {
            name: shown_capacity(held[name]) - held[name].used - amount
            for name, amount in takes.items()
            if name in held
        }
        yield Share(uuid, record.provider.name, takes, left)


def _is_exact(catalog: Catalog, search: Search, query: CandidateQuery) -> bool:
    """Return whether every anchor has a candidate.

    The parts of one group ask for different classes, so they never compete. Left to the
    combination are the traits that the unsuffixed group requires together, and sharing providers.
    """
    together = catalog.is_nested and any(
        not group.suffix and group.traits.required for group in query.groups
    )
    return search.takes_lone() and not together
