"""Prune the trees that cannot serve all parts of a query together, a whole chunk at once.

Every condition here is necessary, not sufficient: `walk.py` decides on the remaining trees.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.capacity import largest
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.catalog.ancestors import parent_rows, with_ancestors
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.groups import GroupPart, Rows
from moorage.core.ledger.search.sharing import SharingProvider

Hosts = list[tuple[Mask, list[SharingProvider]]]
"""For each aggregate with guests: the roots of the trees that are in it, and the guests."""


class Demand(NamedTuple):
    """The joint need of some terms from all providers that may serve any of them."""

    terms: tuple[int, ...]
    name: str
    """A resource class; if it is empty, `amount` counts different providers."""
    amount: int


def demands(query: CandidateQuery, terms: list[GroupPart], kinds: list[int]) -> list[Demand]:
    """Return the joint demands of all competing terms, and of those of one kind."""
    found: list[Demand] = []
    if query.group_policy == "isolate":
        suffixed = [number for number, term in enumerate(terms) if term.is_suffixed]
        found += [Demand(these, "", len(these)) for these in _competing(suffixed, kinds)]
    for name in {name: None for term in terms for name in term.resources}:
        asking = [number for number, term in enumerate(terms) if name in term.resources]
        for these in _competing(asking, kinds):
            found.append(Demand(these, name, sum(terms[n].resources[name] for n in these)))
    return found


def _competing(numbers: list[int], kinds: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all of these terms, then each subset that the same providers can serve."""
    if len(numbers) < 2:
        return
    yield tuple(numbers)
    alike: dict[int, list[int]] = {}
    for number in numbers:
        alike.setdefault(kinds[number], []).append(number)
    for these in alike.values():
        if 1 < len(these) < len(numbers):
            yield tuple(these)


def enough_for(chunk: Chunk, demand: Demand, serving: list[Rows], hosts: Hosts) -> Mask:
    """Return the roots at which the tree and its guests may meet a demand."""
    given = _rooms(chunk, demand, serving)
    if chunk.trees.is_forest:
        given = np.bincount(chunk.trees.root, given, chunk.size).astype(np.float64, copy=False)
    for mask, guests in hosts:
        # A guest in two aggregates counts twice: this may keep a tree too many, but drops none.
        given = given + mask * sum(_room(guest, demand) for guest in guests)
    enough: Mask = given >= demand.amount
    return enough


def _rooms(chunk: Chunk, demand: Demand, serving: list[Rows]) -> NDArray[np.float64]:
    """Return how much each row can give to the terms of a demand."""
    able = np.zeros(chunk.size, dtype=np.bool_)
    for number in demand.terms:
        mask = serving[number].at_home
        if mask is not None:
            able |= mask
    column = chunk.columns.get(demand.name)
    if not demand.name:
        return able.astype(np.float64)
    if column is None:
        return np.zeros(chunk.size)
    return np.where(able, column.largest, 0).astype(np.float64)


def _room(guest: SharingProvider, demand: Demand) -> int:
    if not any(guest.serves[number] for number in demand.terms):
        return 0
    return largest(guest.record.inventories[demand.name]) if demand.name else 1


class Ancestry:
    """The rows that serve each term of a query, with all rows above them, computed once each."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._known: dict[int, Mask] = {}

    def of(self, number: int, mask: Mask) -> Mask:
        """Return the rows that serve a term, given as a mask, and all rows above them."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = with_ancestors(mask, parent_rows(self._chunk))
        return known


def joined(
    chunk: Chunk, these: list[int], above: Ancestry, serving: list[Rows], hosts: Hosts
) -> Mask:
    """Return the roots at which one provider and others below it may serve these terms."""
    found: Mask = np.zeros(chunk.size, dtype=np.bool_)
    masks = [mask for number in these if (mask := serving[number].at_home) is not None]
    if len(masks) == len(these):
        top = np.logical_or.reduce(masks)
        for number, mask in zip(these, masks, strict=True):
            top &= above.of(number, mask)
        found = chunk.trees.any_of(top)
    # Guests are not below any provider of the tree, so they must serve all terms, or none.
    by_guests = np.ones(chunk.size, dtype=np.bool_)
    for number in these:
        hosting = [m for m, guests in hosts if any(guest.serves[number] for guest in guests)]
        by_guests = within(by_guests, hosting)
    return found | by_guests


def within(anchors: Mask, alternatives: list[Mask]) -> Mask:
    """Keep the anchors that are in at least one of the masks."""
    if not alternatives:
        return np.zeros_like(anchors)
    one = alternatives[0] if len(alternatives) == 1 else np.logical_or.reduce(alternatives)
    mask: Mask = anchors & one
    return mask
