"""One query over one catalog: the anchors at which it may be served, and the candidates of each.

A sieve over all rows of a chunk leaves the anchors (roots of trees) where some provider can serve
each part of the query; `open` then combines the parts at one anchor. Every condition of the sieve
is necessary, not sufficient: `walk.py` decides on the remaining trees.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.capacity import largest
from moorage.core.ledger.requests import Candidate, CandidateQuery, Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.catalog.ancestors import parent_rows, with_ancestors
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk, Place
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.catalog.summaries import Counts, Summaries
from moorage.core.ledger.search.combine.choices import Merged
from moorage.core.ledger.search.combine.combiner import Combiner
from moorage.core.ledger.search.compact_candidates import CandidateBuilder
from moorage.core.ledger.search.groups import (
    GroupPart,
    Rows,
    barred_roots,
    kinds,
    rows_that_serve,
    shared_needs,
    terms,
    with_traits,
)
from moorage.core.ledger.search.sharing import SharingProvider, SharingProviders
from moorage.core.ledger.search.steps import Steps


def prospects(
    summaries: Summaries,
    query: CandidateQuery,
    terms: Sequence[GroupPart],
    numbers: Collection[int],
    in_tree: Sequence[Place | None],
    abroad: Collection[int],
    needs: Sequence[frozenset[str]],
) -> Counts:
    """Return an upper bound of the anchors of each chunk.

    An anchor needs a row of its own tree for every term that no sharing provider can serve, and one
    for every set of traits that the unsuffixed group requires. So the smallest count of such rows
    bounds the anchors of a chunk.

    Args:
        summaries: Of the chunks.
        query: The request.
        terms: The terms of the query.
        numbers: The number of one term of each kind.
        in_tree: For each term a place in the tree that it demands, if it demands one.
        abroad: The numbers of the terms that a sharing provider can serve for other trees.
        needs: The trait sets that the providers of the unsuffixed group must meet together.
    """
    most: Counts = summaries.rows.rows[: summaries.size].copy()
    for number in numbers:
        if number not in abroad:
            _narrow(most, summaries, terms[number], in_tree[number])
    required = [*query.root_traits.required, *(() if abroad else needs)]
    for names in required:
        np.minimum(most, summaries.rows_named(summaries.traits, names), out=most)
    return most


def _narrow(most: Counts, summaries: Summaries, term: GroupPart, place: Place | None) -> None:
    """Lower the counts to those of the rows that may serve a term at home."""
    if place is not None:
        most[: place[0].number] = 0
        most[place[0].number + 1 :] = 0
    for name, amount in term.resources.items():
        rows = summaries.rows_with(name, amount)
        if rows is None:
            most[:] = 0
        else:
            np.minimum(most, rows, out=most)
    for names in term.group.traits.required if term.is_suffixed else ():
        np.minimum(most, summaries.rows_named(summaries.traits, names), out=most)
    for names in term.group.aggregates.member_of:
        np.minimum(most, summaries.rows_named(summaries.aggregates, names), out=most)


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

    def takes_lone(self) -> bool:
        """Has every anchor that is a tree by itself a `single` candidate?"""
        return len(self._query.groups) == 1 and not (self._guests or self._merged.altered)

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
