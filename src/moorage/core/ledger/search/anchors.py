"""One query over one fleet: the anchors at which it may be served, and the candidates of each.

A sieve over all rows of a block leaves the anchors (the roots of trees) at which every part of the
query can be served by someone; `open` then combines the parts at one of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import Candidate, CandidateQuery
from moorage.core.ledger.search.block import Block, Place
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.combine import Combiner
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import (
    Rows,
    barred_roots,
    rows_that_serve,
    shared_needs,
    terms,
    with_traits,
)


class _Guest(NamedTuple):
    """A sharing provider that can serve other trees, and which of the terms."""

    record: ProviderRecord
    serves: list[bool]


class Search:
    """One query over one fleet. Call `begin` first."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, budget: Budget | None = None) -> None:
        self._fleet = fleet
        self._query = query
        self.budget = budget or Budget()
        self.terms = terms(query.groups)
        self._needs = shared_needs(query.groups)
        self._rows: dict[Block, list[Rows]] = {}
        self._in_tree: list[Place | None] = []
        self._guests: dict[AggregateId, list[_Guest]] = {}
        self._homes: dict[Block, list[bytes]] = {}
        self._roaming: set[object] = set()
        self._combiner = Combiner(query, self.terms, fleet.record)

    def begin(self) -> bool:
        """Look up the trees and sharing providers that matter; False: nothing can be found."""
        for term in self.terms:
            tree = term.group.in_tree
            place = None if tree is None else self._fleet.places.get(tree)
            if tree is not None and place is None:
                return False
            self._in_tree.append(place)
        self._invite()
        return True

    def _invite(self) -> None:
        """Find the sharing providers that can serve other trees, by the aggregates they share."""
        for uuid in self._fleet.sharing:
            block, row = self._fleet.places[uuid]
            record = block.record(row)
            if not record.tags.aggregates:
                continue
            masks = [rows.abroad for rows in self._serving(block)]
            serves = [mask is not None and bool(mask[row]) for mask in masks]
            if any(serves):
                for aggregate in record.tags.aggregates:
                    self._guests.setdefault(aggregate, []).append(_Guest(record, serves))

    def _serving(self, block: Block) -> list[Rows]:
        """Return the rows of a block that can serve each term."""
        known = self._rows.get(block)
        if known is None:
            known = [
                rows_that_serve(block, term, place)
                for term, place in zip(self.terms, self._in_tree, strict=True)
            ]
            self._rows[block] = known
        return known

    def anchor_rows(self, block: Block) -> NDArray[np.intp]:
        """Return the rows of roots that are worth opening."""
        return self.served_rows(block)

    def served_rows(self, block: Block) -> NDArray[np.intp]:
        """Return the rows of roots at which every term may be served by someone.

        Where a tree is a lone provider without guests, every single term is; elsewhere the
        traits that an unsuffixed group requires together are left to the combination.
        """
        trees = block.trees
        hosts = {
            aggregate: trees.any_of(block.aggregates.masks[aggregate])
            for aggregate in self._guests
            if aggregate in block.aggregates.masks
        }
        roots = with_traits(block, self._query.root_traits)
        if roots is None:
            return np.empty(0, dtype=np.intp)
        anchors = roots & trees.is_root
        for number, rows in enumerate(self._serving(block)):
            reached = [] if rows.at_home is None else [trees.any_of(rows.at_home)]
            for aggregate, mask in hosts.items():
                if any(guest.serves[number] for guest in self._guests[aggregate]):
                    reached.append(mask)
            anchors = _within(anchors, reached)
        for names in self._needs:
            having_it = block.traits.any_of(names)
            met = [] if having_it is None else [trees.any_of(having_it)]
            anchors = _within(anchors, [*met, *hosts.values()])
        barred = self._barred(block)
        if barred is not None:
            anchors &= ~barred
        return np.flatnonzero(anchors)

    def _barred(self, block: Block) -> Mask | None:
        """Which rows cannot be anchors because the unsuffixed group forbids their aggregates?"""
        for group in self._query.groups:
            if not group.suffix:
                return barred_roots(block, group.aggregates)
        return None

    def single(self, block: Block, anchor: int) -> Candidate | None:
        """Return the only candidate of an anchor, if the sieve has checked all there is.

        That is so where one provider serves one group. None: `open` has to find the candidates.
        """
        groups = self._query.groups
        if len(groups) != 1 or not block.trees.is_lone(anchor):
            return None
        record = block.record(anchor)
        if self._guests and not self._guests.keys().isdisjoint(record.tags.aggregates):
            return None
        uuid = record.provider.uuid
        return Candidate({uuid: groups[0].resources}, {groups[0].suffix: (uuid,)})

    def open(self, block: Block, anchor: int) -> Iterator[Candidate]:
        """Return the candidates of one anchor, one by one.

        They are those of the fleet as it is now, whenever they are taken. What another anchor has
        led to is left out. The iterator ends early when the steps of the anchor or of the search
        are used up: then `budget.complete` is False, and `budget.over` says to end the search.

        Args:
            block: A block of the fleet.
            anchor: A row from `anchor_rows(block)`.
        """
        only = self.single(block, anchor)
        if only is not None:
            return iter((only,))
        options = self._options(block, anchor)
        return self._merged(self._combiner.combine(options, self.budget))

    def _merged(self, found: Iterator[tuple[Candidate, bool]]) -> Iterator[Candidate]:
        """Leave out what other anchors have led to: only sharing providers serve several."""
        for candidate, roams in found:
            if roams:
                key = _content(candidate)
                if key in self._roaming:
                    continue
                self._roaming.add(key)
            yield candidate

    def _options(self, block: Block, anchor: int) -> list[list[ProviderRecord]]:
        """Return, for each term, the providers that can serve it at this anchor."""
        homes = self._homes.get(block)
        if homes is None:
            homes = self._homes[block] = [
                b"" if rows.at_home is None else rows.at_home.tobytes()
                for rows in self._serving(block)
            ]
        members = block.trees.members(anchor)
        guests = self._guests_of(block, members) if self._guests else []
        self.budget.steps += (len(members) + len(guests)) * len(homes)
        return [
            [block.record(row) for row in members if mask and mask[row]]
            + [guest.record for guest in guests if guest.serves[number]]
            for number, mask in enumerate(homes)
        ]

    def _guests_of(self, block: Block, members: list[int]) -> list[_Guest]:
        """Return the sharing providers of other trees that share an aggregate with this tree."""
        root = block.record(members[0]).provider.root
        found: dict[ProviderId, _Guest] = {}
        for row in members:
            for aggregate in sorted(block.record(row).tags.aggregates):
                for guest in self._guests.get(aggregate, ()):
                    if guest.record.provider.root != root:
                        found[guest.record.provider.uuid] = guest
        return list(found.values())


def _within(anchors: Mask, alternatives: list[Mask]) -> Mask:
    """Keep the anchors that are in one of the masks at least."""
    if not alternatives:
        return np.zeros_like(anchors)
    for other in alternatives[1:]:
        alternatives[0] = alternatives[0] | other
    return anchors & alternatives[0]


def _content(candidate: Candidate) -> object:
    """Return a value that equal candidates have in common."""
    return (
        frozenset((u, frozenset(given.items())) for u, given in candidate.allocations.items()),
        frozenset((suffix, frozenset(us)) for suffix, us in candidate.mappings.items()),
    )
