"""Prune the trees that cannot serve all parts of a query together, a whole block at once.

Every condition here is necessary, not sufficient: `walk.py` finds out about the trees that remain.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.capacity import largest
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.block import Block
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.groups import Rows, Term
from moorage.core.ledger.search.lineage import parent_rows, with_ancestors
from moorage.core.ledger.search.sharing import Guest

Hosts = list[tuple[Mask, list[Guest]]]
"""For each aggregate that guests share: the roots of the trees that are in it, and the guests."""


class Demand(NamedTuple):
    """What some terms need together of those that may serve any of them."""

    terms: tuple[int, ...]
    name: str
    """A resource class; if it is empty, `amount` counts different providers."""
    amount: int


def demands(query: CandidateQuery, terms: list[Term], kinds: list[int]) -> list[Demand]:
    """Return what is needed together by all terms that compete, and by those of one kind."""
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
    """Yield all of these terms, then those among them that the same providers can serve."""
    if len(numbers) < 2:
        return
    yield tuple(numbers)
    alike: dict[int, list[int]] = {}
    for number in numbers:
        alike.setdefault(kinds[number], []).append(number)
    for these in alike.values():
        if 1 < len(these) < len(numbers):
            yield tuple(these)


def enough_for(block: Block, demand: Demand, serving: list[Rows], hosts: Hosts) -> Mask:
    """Return the roots at which the tree and its guests may meet a demand."""
    given = _rooms(block, demand, serving)
    if block.trees.is_forest:
        given = np.bincount(block.trees.root, given, block.size).astype(np.float64, copy=False)
    for mask, guests in hosts:
        # A guest of two aggregates counts twice: that leaves a tree too much, never one too few.
        given = given + mask * sum(_room(guest, demand) for guest in guests)
    enough: Mask = given >= demand.amount
    return enough


def _rooms(block: Block, demand: Demand, serving: list[Rows]) -> NDArray[np.float64]:
    """Return what each row can give to the terms of a demand."""
    able = np.zeros(block.size, dtype=np.bool_)
    for number in demand.terms:
        mask = serving[number].at_home
        if mask is not None:
            able |= mask
    column = block.columns.get(demand.name)
    if not demand.name:
        return able.astype(np.float64)
    if column is None:
        return np.zeros(block.size)
    return np.where(able, column.largest, 0).astype(np.float64)


def _room(guest: Guest, demand: Demand) -> int:
    if not any(guest.serves[number] for number in demand.terms):
        return 0
    return largest(guest.record.inventories[demand.name]) if demand.name else 1


class Ancestry:
    """The rows that serve each term of a query, with all rows above them, computed once each."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._known: dict[int, Mask] = {}

    def of(self, number: int, mask: Mask) -> Mask:
        """Return the rows that serve a term, given as a mask, and all rows above them."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = with_ancestors(mask, parent_rows(self._block))
        return known


def joined(
    block: Block, these: list[int], above: Ancestry, serving: list[Rows], hosts: Hosts
) -> Mask:
    """Return the roots at which one provider and others below it may serve these terms."""
    found: Mask = np.zeros(block.size, dtype=np.bool_)
    masks = [mask for number in these if (mask := serving[number].at_home) is not None]
    if len(masks) == len(these):
        top = np.logical_or.reduce(masks)
        for number, mask in zip(these, masks, strict=True):
            top &= above.of(number, mask)
        found = block.trees.any_of(top)
    # Guests are below nobody of the tree, so all of it is served by them, or nothing.
    by_guests = np.ones(block.size, dtype=np.bool_)
    for number in these:
        hosting = [m for m, guests in hosts if any(guest.serves[number] for guest in guests)]
        by_guests = within(by_guests, hosting)
    return found | by_guests


def within(anchors: Mask, alternatives: list[Mask]) -> Mask:
    """Keep the anchors that are in one of the masks at least."""
    if not alternatives:
        return np.zeros_like(anchors)
    one = alternatives[0] if len(alternatives) == 1 else np.logical_or.reduce(alternatives)
    mask: Mask = anchors & one
    return mask
