"""One query over one catalog: the anchors at which it may be served, and the candidates of each.

A sieve over all rows of a chunk leaves the anchors (roots of trees) where some provider can serve
each part of the query; `open` then combines the parts at one anchor.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.requests import Candidate, CandidateQuery, Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk, Place
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.catalog.summaries import Counts
from moorage.core.ledger.search.combine.choices import Merged
from moorage.core.ledger.search.combine.combiner import Combiner
from moorage.core.ledger.search.compact_candidates import CandidateBuilder
from moorage.core.ledger.search.groups import (
    Rows,
    barred_roots,
    kinds,
    rows_that_serve,
    shared_needs,
    terms,
    with_traits,
)
from moorage.core.ledger.search.promising_chunks import prospects
from moorage.core.ledger.search.pruning import (
    Ancestry,
    Hosts,
    demands,
    enough_for,
    joined,
    within,
)
from moorage.core.ledger.search.sharing import SharingProviders
from moorage.core.ledger.search.steps import Steps

SMALL_TREE = 64
"""A tree with at most this many members is combined without a pause."""

SIEVE_STEPS = 20
"""Steps of comparing one chunk with one part of a query."""


class Search:
    """One query over one catalog. Run `beginning` first."""

    def __init__(
        self, catalog: Catalog, query: CandidateQuery, budget: Budget | None = None
    ) -> None:
        self._catalog = catalog
        self._query = query
        self.budget = budget or Budget()
        self.terms = terms(query.groups)
        self._kinds = kinds(self.terms)
        self._firsts = [self._kinds.index(kind) for kind in range(len(set(self._kinds)))]
        """The number of the first term of each kind."""
        self._needs = shared_needs(query.groups)
        self._rows: dict[Chunk, list[Rows]] = {}
        self._in_tree: list[Place | None] = []
        self._homes: dict[Chunk, list[bytes]] = {}
        self._possible = True
        self._guests = SharingProviders(catalog)
        self._merged = Merged()
        self._shares = bool(catalog.sharing)
        self._demands = demands(query, self.terms, self._kinds)
        self._lines = [
            [number for number, term in enumerate(self.terms) if term.suffix in names]
            for names in query.same_subtree
        ]
        self._sieve_steps = SIEVE_STEPS * (
            1 + len(self._firsts) + len(self._demands) + sum(map(len, self._lines))
        )

    @cached_property
    def _spelling(self) -> CandidateBuilder:
        return CandidateBuilder(self.terms)

    @cached_property
    def _combiner(self) -> Combiner:
        # Created on demand: lone providers that serve one group have nothing to combine.
        return Combiner(self._query, self.terms, self._catalog.record, self._merged)

    def beginning(self) -> Steps[bool]:
        """Look up the relevant trees and sharing providers; False: nothing can be found.

        The catalog may change between two pieces.
        """
        began = applied = self._catalog.applied
        self._look_again()
        for _ in self._guests.invite(self._serving):
            yield
            if self._catalog.applied != applied:
                applied = self._catalog.applied
                self._look_again()
        if applied != began:
            self.again()
        return self._possible

    def again(self) -> None:
        """Read the catalog again after a change. Anchors that are open do not change."""
        self._merged.altered = self._shares
        self._look_again()
        for _ in self._guests.invite(self._serving):
            pass

    def forget(self, chunk: Chunk) -> None:
        """Drop the cached rows of a chunk."""
        self._rows.pop(chunk, None)
        self._homes.pop(chunk, None)

    def _look_again(self) -> None:
        self._rows.clear()
        self._homes.clear()
        trees = [term.group.in_tree for term in self.terms]
        self._in_tree = [None if tree is None else self._catalog.places.get(tree) for tree in trees]
        lost = any(t and not place for t, place in zip(trees, self._in_tree, strict=True))
        self._possible = not lost
        if any(trees):  # guests may have left that tree without a change of their records
            self._guests.forget()

    def abroad(self) -> set[int]:
        """Return the numbers of the terms that a sharing provider can serve for other trees."""
        return {
            number
            for guests in self._guests.by_aggregate.values()
            for guest in guests
            for number, serves in enumerate(guest.serves)
            if serves
        }

    def prospects(self) -> Counts:
        """Return an upper bound of the anchors of each chunk; 0: nothing can be found in it."""
        return prospects(
            self._catalog.summaries,
            self._query,
            self.terms,
            self._firsts,
            self._in_tree,
            self.abroad(),
            self._needs,
        )

    def _serving(self, chunk: Chunk) -> list[Rows]:
        """Return the rows of a chunk that can serve each term."""
        known = self._rows.get(chunk)
        if known is None:
            self.budget.steps += self._sieve_steps
            found = [
                rows_that_serve(chunk, self.terms[number], self._in_tree[number])
                for number in self._firsts
            ]
            known = self._rows[chunk] = [found[kind] for kind in self._kinds]
        return known

    def anchor_rows(self, chunk: Chunk) -> NDArray[np.intp]:
        """Return the rows of roots that are worth opening, ascending."""
        if not self._possible:
            return np.empty(0, dtype=np.intp)
        hosts = self._hosts(chunk)
        anchors = self._served(chunk, hosts)
        if (self._demands or self._lines) and anchors.any():
            serving = self._serving(chunk)
            for demand in self._demands:
                anchors &= enough_for(chunk, demand, serving, hosts)
            above = Ancestry(chunk)
            for these in self._lines:
                anchors &= joined(chunk, these, above, serving, hosts)
        return np.flatnonzero(anchors)

    def served_rows(self, chunk: Chunk) -> NDArray[np.intp]:
        """Return the rows of roots at which each single term may be served."""
        return np.flatnonzero(self._served(chunk, self._hosts(chunk)))

    def _served(self, chunk: Chunk, hosts: Hosts) -> Mask:
        """At which roots may each single term be served?

        This is exact for trees of one provider without guests; elsewhere the traits that an
        unsuffixed group requires together are left to the combination.
        """
        trees = chunk.trees
        roots = with_traits(chunk, self._query.root_traits)
        if roots is None:
            return np.zeros(chunk.size, dtype=np.bool_)
        anchors: Mask = roots & trees.is_root
        serving = self._serving(chunk)
        for number in self._firsts:
            rows = serving[number]
            reached = [] if rows.at_home is None else [trees.any_of(rows.at_home)]
            for mask, guests in hosts:
                if any(guest.serves[number] for guest in guests):
                    reached.append(mask)
            anchors = within(anchors, reached)
        for names in self._needs:
            having_it = chunk.traits.any_of(names)
            met = [] if having_it is None else [trees.any_of(having_it)]
            anchors = within(anchors, [*met, *(mask for mask, _ in hosts)])
        for group in self._query.groups:
            if not group.suffix:
                # Nothing may serve a tree whose root is in a forbidden aggregate.
                barred = barred_roots(chunk, group.aggregates)
                if barred is not None:
                    anchors &= ~barred
        return anchors

    def _hosts(self, chunk: Chunk) -> Hosts:
        """Return the roots of the trees that guests can serve, and the guests, by aggregate."""
        masks = chunk.aggregates.masks
        return [
            (chunk.trees.any_of(masks[aggregate]), guests)
            for aggregate, guests in self._guests.by_aggregate.items()
            if aggregate in masks
        ]

    def single(self, chunk: Chunk, anchor: int) -> Pick | None:
        """Return the only candidate of an anchor, if the sieve has checked everything.

        This holds if one provider serves one group. None: `picks` must find the candidates.
        """
        groups = self._query.groups
        if len(groups) != 1 or not chunk.trees.is_lone(anchor):
            return None
        if self._merged.altered:
            return None  # as a sharing provider it may have been found from other anchors
        record = chunk.record(anchor)
        if self._guests and not self._guests.by_aggregate.keys().isdisjoint(record.tags.aggregates):
            return None
        return (record.provider.uuid,) * len(self.terms)

    def open(self, chunk: Chunk, anchor: int) -> Iterator[Candidate | None]:
        """Yield the candidates of one anchor, one by one; None: a pause is due.

        All of them are as of the first call of `next`, regardless of when the others are taken.
        Candidates that another anchor has given are left out. The iterator ends early if the steps
        of the anchor or of the search are used up: then `budget.complete` is False; with
        `budget.over` the search must end.

        Args:
            chunk: A chunk of the catalog.
            anchor: A row from `anchor_rows(chunk)`.
        """
        only = self.single(chunk, anchor)
        for pick in self.picks(chunk, anchor) if only is None else (only,):
            yield None if pick is None else self._spelling.candidate(pick)

    def picks(self, chunk: Chunk, anchor: int) -> Iterator[Pick | None]:
        """As `open`, but compact, and only for anchors without a `single` candidate."""
        rows = chunk.trees.members(anchor)
        if self._shares or self._combiner.relates or len(rows) > SMALL_TREE:
            return self._combined(chunk, anchor)
        self.budget.steps += len(rows) * len(self.terms)
        members = [(row, chunk.record(row)) for row in rows]
        options = [
            [record for row, record in members if mask[row]] if mask else []
            for mask in self._homes_in(chunk)
        ]
        if len(options) < len(self.terms):
            options = [options[kind] for kind in self._kinds]
        if self._combiner.is_free(options):
            return product(*[[record.provider.uuid for record in each] for each in options])
        return self._combiner.combine(options, {}, self.budget)

    def _combined(self, chunk: Chunk, anchor: int) -> Iterator[Pick | None]:
        """As `picks`, for trees that are large or may be served by guests."""
        budget = self.budget
        homes = self._homes_in(chunk)
        # Read everything from the catalog before the first pause.
        rows = chunk.trees.members(anchor)[:]
        members = [chunk.record(row) for row in rows]
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

    def _homes_in(self, chunk: Chunk) -> list[bytes]:
        """Return for each kind which rows of a chunk can serve it in their own tree, as bytes."""
        homes = self._homes.get(chunk)
        if homes is None:
            serving = self._serving(chunk)
            masks = [serving[number].at_home for number in self._firsts]
            homes = self._homes[chunk] = [b"" if mask is None else mask.tobytes() for mask in masks]
        return homes
