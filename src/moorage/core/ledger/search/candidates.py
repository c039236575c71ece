"""One question for allocation candidates, from beginning to end.

Blocks are visited one after another: a sieve over all rows of a block leaves the anchors (the
roots of trees) at which every group can be served, then the groups are combined there.
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import Candidate, CandidateAnswer, CandidateQuery
from moorage.core.ledger.search.block import Block, Place
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.combine import Combiner, Enough, Found
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import (
    Rows,
    barred_roots,
    rows_that_serve,
    shared_needs,
    terms,
    with_traits,
)


def candidates(fleet: Fleet, query: CandidateQuery, start: int = 0) -> CandidateAnswer:
    """Find where all groups of a query can be served together.

    Args:
        fleet: The providers as they are now.
        query: What is asked for; every class and trait in it exists.
        start: Where to begin when `limit` cuts, so that askers do not all get the same. The same
            start gives the same answer; without a limit it has no influence.
    """
    found = Found(query.limit)
    search = Search(fleet, query, found)
    with suppress(Enough):
        search.run(start)
    return CandidateAnswer(found.candidates, _summaries(fleet, query, found), found.exhausted)


def _summaries(fleet: Fleet, query: CandidateQuery, found: Found) -> list[ProviderId]:
    """Return the providers in the candidates or, with a nested query, their whole trees."""
    shown: dict[ProviderId, object] = {}
    for candidate in found.candidates:
        shown.update(candidate.allocations)
    if not query.nested:
        return list(shown)
    whole: dict[ProviderId, None] = {}
    for uuid in shown:
        if uuid not in whole:
            whole.update(dict.fromkeys(fleet.tree_of(uuid)))
    return list(whole)


class _Guest(NamedTuple):
    """A sharing provider that can serve other trees, and which of the terms."""

    record: ProviderRecord
    serves: list[bool]


class Search:
    """One query over one fleet."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, found: Found) -> None:
        self._fleet = fleet
        self._query = query
        self._found = found
        self.terms = terms(query.groups)
        self._needs = shared_needs(query.groups)
        self._rows: dict[Block, list[Rows]] = {}
        self._in_tree: list[Place | None] = []
        self._guests: dict[AggregateId, list[_Guest]] = {}
        self._combiner = Combiner(query, self.terms, found, fleet.record)

    def run(self, start: int) -> None:
        """Visit all blocks. Raises Enough at the limit."""
        if not self.begin():
            return
        blocks = self._fleet.blocks
        if self._query.limit is None or not blocks:
            for block in blocks:
                self.visit(block, self._anchors(block))
            return
        self._run_from(start, self._query.limit)

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

    def _run_from(self, start: int, limit: int) -> None:
        """Visit all blocks from a place that moves with `start`, then put them in order."""
        blocks = self._fleet.blocks
        rounds, first = divmod(start, len(blocks))
        rows = self._anchors(blocks[first])
        # The next round begins where this one is likely to end.
        cut = rounds * limit % len(rows) if len(rows) else 0
        self.visit(blocks[first], rows[cut:])
        for block in blocks[first + 1 :]:
            self.visit(block, self._anchors(block))
        turn = len(self._found.candidates)
        for block in blocks[:first]:
            self.visit(block, self._anchors(block))
        self.visit(blocks[first], rows[:cut])
        everything = self._found.candidates
        everything[:] = everything[turn:] + everything[:turn]

    def _anchors(self, block: Block) -> list[int]:
        rows: list[int] = self.anchor_rows(block).tolist()
        return rows

    def anchor_rows(self, block: Block) -> NDArray[np.intp]:
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

    def visit(self, block: Block, anchors: list[int]) -> None:
        """Add the candidates of these anchors. Raises Enough at the limit."""
        if not anchors:
            return
        masks = [
            b"" if rows.at_home is None else rows.at_home.tobytes() for rows in self._serving(block)
        ]
        groups, add = self._query.groups, self._found.add
        for anchor in anchors:
            if len(groups) == 1 and block.trees.is_lone(anchor):
                record = block.record(anchor)
                if not self._guests or self._guests.keys().isdisjoint(record.tags.aggregates):
                    uuid = record.provider.uuid
                    # One provider for one group: the sieve has checked all there is.
                    add(Candidate({uuid: groups[0].resources}, {groups[0].suffix: (uuid,)}))
                    continue
            self._combiner.combine(self._options(block, anchor, masks))

    def _options(self, block: Block, anchor: int, masks: list[bytes]) -> list[list[ProviderRecord]]:
        """Return, for each term, the providers that can serve it at this anchor."""
        members = block.trees.members(anchor)
        guests = self._guests_of(block, members) if self._guests else []
        return [
            [block.record(row) for row in members if mask and mask[row]]
            + [guest.record for guest in guests if guest.serves[number]]
            for number, mask in enumerate(masks)
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
