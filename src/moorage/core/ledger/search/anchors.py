"""One query over one fleet: the anchors at which it may be served, and the candidates of each.

A sieve over all rows of a block leaves the anchors (the roots of trees) at which every part of the
query can be served by someone; `open` then combines the parts at one of them.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import Candidate, CandidateQuery, Pick
from moorage.core.ledger.search.block import Block, Place
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.combine import Combiner
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import (
    Rows,
    barred_roots,
    kinds,
    rows_that_serve,
    shared_needs,
    terms,
    with_traits,
)
from moorage.core.ledger.search.picks import Spelling
from moorage.core.ledger.search.prospects import prospects
from moorage.core.ledger.search.pruning import (
    Ancestry,
    Hosts,
    demands,
    enough_for,
    joined,
    within,
)
from moorage.core.ledger.search.sharing import Guests
from moorage.core.ledger.search.steps import Steps
from moorage.core.ledger.search.summaries import Counts
from moorage.core.ledger.search.walk import Merged

SMALL_TREE = 64
"""Members of a tree up to which it is laid out without a rest."""

SIEVE_STEPS = 20
"""Steps that it takes to compare one block with one part of a query."""


class Search:
    """One query over one fleet. Call `begin` first."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, budget: Budget | None = None) -> None:
        self._fleet = fleet
        self._query = query
        self.budget = budget or Budget()
        self.terms = terms(query.groups)
        self._kinds = kinds(self.terms)
        self._firsts = [self._kinds.index(kind) for kind in range(len(set(self._kinds)))]
        """For each kind the number of its first term."""
        self._needs = shared_needs(query.groups)
        self._rows: dict[Block, list[Rows]] = {}
        self._in_tree: list[Place | None] = []
        self._homes: dict[Block, list[bytes]] = {}
        self._possible = True
        self._guests = Guests(fleet)
        self._merged = Merged()
        self._shares = bool(fleet.sharing)
        self._demands = demands(query, self.terms, self._kinds)
        self._lines = [
            [number for number, term in enumerate(self.terms) if term.suffix in names]
            for names in query.same_subtree
        ]
        self._sieve_steps = SIEVE_STEPS * (
            1 + len(self._firsts) + len(self._demands) + sum(map(len, self._lines))
        )

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.terms)

    @cached_property
    def _combiner(self) -> Combiner:
        # Made when it is needed: lone providers that serve one group have nothing to combine.
        return Combiner(self._query, self.terms, self._fleet.record, self._merged)

    def beginning(self) -> Steps[bool]:
        """Look up the trees and sharing providers that matter; False: nothing can be found.

        The fleet may change between two pieces.
        """
        began = applied = self._fleet.applied
        self._look_again()
        for _ in self._guests.invite(self._serving):
            yield
            if self._fleet.applied != applied:
                applied = self._fleet.applied
                self._look_again()
        if applied != began:
            self.again()
        return self._possible

    def again(self) -> None:
        """Look at the fleet anew after it has changed. What was opened before stays as it was."""
        self._merged.altered = self._shares
        self._look_again()
        for _ in self._guests.invite(self._serving):
            pass

    def forget(self, block: Block) -> None:
        """Keep nothing of a block any more."""
        self._rows.pop(block, None)
        self._homes.pop(block, None)

    def _look_again(self) -> None:
        self._rows.clear()
        self._homes.clear()
        trees = [term.group.in_tree for term in self.terms]
        self._in_tree = [None if tree is None else self._fleet.places.get(tree) for tree in trees]
        lost = any(t and not place for t, place in zip(trees, self._in_tree, strict=True))
        self._possible = not lost
        if any(trees):  # whoever is not of that tree may have been, without any change
            self._guests.forget()

    def abroad(self) -> set[int]:
        """Return the numbers of the terms that some sharing provider can serve for other trees."""
        return {
            number
            for guests in self._guests.by_aggregate.values()
            for guest in guests
            for number, serves in enumerate(guest.serves)
            if serves
        }

    def prospects(self) -> Counts:
        """Return how many anchors each block may have at most; 0: nothing can be found in it."""
        return prospects(
            self._fleet.summaries,
            self._query,
            self.terms,
            self._firsts,
            self._in_tree,
            self.abroad(),
            self._needs,
        )

    def _serving(self, block: Block) -> list[Rows]:
        """Return the rows of a block that can serve each term."""
        known = self._rows.get(block)
        if known is None:
            self.budget.steps += self._sieve_steps
            found = [
                rows_that_serve(block, self.terms[number], self._in_tree[number])
                for number in self._firsts
            ]
            known = self._rows[block] = [found[kind] for kind in self._kinds]
        return known

    def anchor_rows(self, block: Block) -> NDArray[np.intp]:
        """Return the rows of roots that are worth opening, in rising order."""
        if not self._possible:
            return np.empty(0, dtype=np.intp)
        hosts = self._hosts(block)
        anchors = self._served(block, hosts)
        if (self._demands or self._lines) and anchors.any():
            serving = self._serving(block)
            for demand in self._demands:
                anchors &= enough_for(block, demand, serving, hosts)
            above = Ancestry(block)
            for these in self._lines:
                anchors &= joined(block, these, above, serving, hosts)
        return np.flatnonzero(anchors)

    def served_rows(self, block: Block) -> NDArray[np.intp]:
        """Return the rows of roots at which every term may be served by someone, by itself."""
        return np.flatnonzero(self._served(block, self._hosts(block)))

    def _served(self, block: Block, hosts: Hosts) -> Mask:
        """At which roots may every term be served by someone, by itself?

        Where a tree is a lone provider without guests, every single term is; elsewhere the
        traits that an unsuffixed group requires together are left to the combination.
        """
        trees = block.trees
        roots = with_traits(block, self._query.root_traits)
        if roots is None:
            return np.zeros(block.size, dtype=np.bool_)
        anchors: Mask = roots & trees.is_root
        serving = self._serving(block)
        for number in self._firsts:
            rows = serving[number]
            reached = [] if rows.at_home is None else [trees.any_of(rows.at_home)]
            for mask, guests in hosts:
                if any(guest.serves[number] for guest in guests):
                    reached.append(mask)
            anchors = within(anchors, reached)
        for names in self._needs:
            having_it = block.traits.any_of(names)
            met = [] if having_it is None else [trees.any_of(having_it)]
            anchors = within(anchors, [*met, *(mask for mask, _ in hosts)])
        for group in self._query.groups:
            if not group.suffix:
                # Nothing is served to a tree whose root is in an aggregate that is forbidden.
                barred = barred_roots(block, group.aggregates)
                if barred is not None:
                    anchors &= ~barred
        return anchors

    def _hosts(self, block: Block) -> Hosts:
        """Return the roots of the trees that guests can serve, and the guests, by aggregate."""
        masks = block.aggregates.masks
        return [
            (block.trees.any_of(masks[aggregate]), guests)
            for aggregate, guests in self._guests.by_aggregate.items()
            if aggregate in masks
        ]

    def single(self, block: Block, anchor: int) -> Pick | None:
        """Return the only candidate of an anchor, if the sieve has checked all there is.

        That is so where one provider serves one group. None: `picks` has to find the candidates.
        """
        groups = self._query.groups
        if len(groups) != 1 or not block.trees.is_lone(anchor):
            return None
        if self._merged.altered:
            return None  # others may lead to it that were opened when it was a sharing provider
        record = block.record(anchor)
        if self._guests and not self._guests.by_aggregate.keys().isdisjoint(record.tags.aggregates):
            return None
        return (record.provider.uuid,) * len(self.terms)

    def open(self, block: Block, anchor: int) -> Iterator[Candidate | None]:
        """Yield the candidates of one anchor, one by one; None: a rest is due.

        They are those of the fleet as it is when the first is asked for, whenever the others are
        taken. What another anchor has led to is left out. The iterator ends early when the steps of
        the anchor or of the search are used up: then `budget.complete` is False, and `budget.over`
        says to end the search.

        Args:
            block: A block of the fleet.
            anchor: A row from `anchor_rows(block)`.
        """
        only = self.single(block, anchor)
        for pick in self.picks(block, anchor) if only is None else (only,):
            yield None if pick is None else self._spelling.candidate(pick)

    def picks(self, block: Block, anchor: int) -> Iterator[Pick | None]:
        """As `open`, in little memory, and not where there is a `single` one."""
        rows = block.trees.members(anchor)
        if self._shares or self._combiner.relates or len(rows) > SMALL_TREE:
            return self._combined(block, anchor)
        self.budget.steps += len(rows) * len(self.terms)
        members = [(row, block.record(row)) for row in rows]
        options = [
            [record for row, record in members if mask[row]] if mask else []
            for mask in self._homes_in(block)
        ]
        if len(options) < len(self.terms):
            options = [options[kind] for kind in self._kinds]
        if self._combiner.is_free(options):
            return product(*[[record.provider.uuid for record in each] for each in options])
        return self._combiner.combine(options, {}, self.budget)

    def _combined(self, block: Block, anchor: int) -> Iterator[Pick | None]:
        """As `picks`, of trees that are large, or that others may serve."""
        budget = self.budget
        homes = self._homes_in(block)
        # All that the fleet is asked for is asked before the first rest.
        rows = block.trees.members(anchor)[:]
        members = [block.record(row) for row in rows]
        guests = self._guests.of(members) if self._guests else []
        parents = self._combiner.parents([*members, *(guest.record for guest in guests)])
        at_rows = list(zip(rows, members, strict=True))
        options = []
        for number, kind in enumerate(self._kinds):
            mask = homes[kind]
            here = [record for row, record in at_rows if mask[row]] if mask else []
            if guests:
                here += [guest.record for guest in guests if guest.serves[number]]
            options.append(here)
            budget.steps += len(rows) + len(guests)
            if budget.steps >= budget.pause_at:
                yield None
        yield from self._combiner.combine(options, parents, budget)

    def _homes_in(self, block: Block) -> list[bytes]:
        """Return for each kind who in a block can serve it in its own tree, a byte for each row."""
        homes = self._homes.get(block)
        if homes is None:
            serving = self._serving(block)
            masks = [serving[number].at_home for number in self._firsts]
            homes = self._homes[block] = [b"" if mask is None else mask.tobytes() for mask in masks]
        return homes
