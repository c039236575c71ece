"""Combine the groups of a query over the providers of one anchor.

This module prepares the choices, those with the fewest providers first; `walk.py` walks them.

The order decides only how soon a combination is found. No order is good for all queries, so each
turn of a search tries another one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import TypeVar

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateQuery, Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine.choices import (
    LEASTS_MAX,
    Choice,
    Conditions,
    Merged,
    Seat,
    Sums,
    bits_of,
)
from moorage.core.ledger.search.combine.walk import Walk
from moorage.core.ledger.search.groups import GroupPart, shared_needs
from moorage.core.ledger.search.steps import Steps

T = TypeVar("T")

_SPREADING = 0x9E37_79B1
"""Multiples of this odd number, modulo 2 to the 32nd, are in an order that looks random."""


def in_turn(things: list[T], turn: int) -> list[T]:
    """Return the things in the order of a turn; turn 0 leaves them as they are."""
    if not turn:
        return things
    step = (2 * turn + 1) * _SPREADING
    places = sorted(range(len(things)), key=lambda place: ((place + 1) * step) & 0xFFFF_FFFF)
    return [things[place] for place in places]


def sequence(
    terms: Sequence[GroupPart], sizes: Sequence[int], lines: Sequence[tuple[int, ...]], turn: int
) -> list[int]:
    """Return the numbers of the terms in the order of the walk.

    Those with the fewest seats are first. In odd turns, those with the largest amounts are: so
    large parts do not find only remainders of room. Terms that a same_subtree condition relates
    follow one another: after the first of them, few seats are left for the others. Those without
    resources come last, because the others decide where they can be.

    Args:
        terms: Of the query.
        sizes: The number of seats of each term.
        lines: The same_subtree conditions of each term.
        turn: Of the search.
    """

    def rank(number: int) -> tuple[bool, int, int]:
        resources = terms[number].resources
        amount = -sum(resources.values()) if turn % 2 else 0
        return (not resources, amount, sizes[number])

    waiting = sorted(range(len(terms)), key=rank)
    if not any(lines):
        return waiting
    order: list[int] = []
    related: set[int] = set()
    """The same_subtree conditions of the terms so far."""
    while waiting:
        near = (number for number in waiting if not related.isdisjoint(lines[number]))
        number = next(near, waiting[0])
        waiting.remove(number)
        order.append(number)
        related.update(lines[number])
    return order


CLAIMING = 256
"""Seats whose claims are computed in one piece."""

Parents = dict[ProviderId, ProviderId | None]
"""The parent of each provider; None: it is a root."""


class Combiner:
    """Combines the terms of one query; `combine` is called for every anchor."""

    def __init__(
        self,
        query: CandidateQuery,
        terms: list[GroupPart],
        record_of: Callable[[ProviderId], ProviderRecord | None],
        merged: Merged,
    ) -> None:
        self._terms = terms
        self._record_of = record_of
        self._subtrees = query.same_subtree
        self._needs = shared_needs(query.groups)
        amounts: dict[str, list[int]] = {}
        for term in terms:
            for name, amount in term.resources.items():
                amounts.setdefault(name, []).append(amount)
        contended = {name: sorted(each) for name, each in amounts.items() if len(each) > 1}
        self._conditions = Conditions(
            isolate=query.group_policy == "isolate",
            one_per_tree=not query.nested,
            subtrees=len(query.same_subtree),
            needs=(1 << len(self._needs)) - 1,
            contended=contended,
            leasts={name: _some(sorted(set(each))) for name, each in contended.items()},
            special=bool(self._needs or query.same_subtree or not query.nested),
        )
        self._exclusive = bool(self._conditions.isolate or self._conditions.contended)
        self.relates = bool(self._subtrees or self._conditions.one_per_tree)
        """Whether the positions of the providers in their trees matter."""
        self._unsuffixed = [n for n, term in enumerate(terms) if not term.is_suffixed]
        self._competing = [
            [n for n, term in enumerate(terms) if name in term.resources]
            for name in self._conditions.contended
        ]
        if self._conditions.isolate:
            self._competing.append([n for n, term in enumerate(terms) if term.is_suffixed])
        self._lines = [
            tuple(n for n, names in enumerate(query.same_subtree) if term.suffix in names)
            for term in terms
        ]
        self._members = [
            [n for n, lines in enumerate(self._lines) if number in lines]
            for number in range(len(query.same_subtree))
        ]
        """The terms of each same_subtree condition."""
        self._contends = [
            {name: n for name, n in term.resources.items() if name in self._conditions.contended}
            for term in terms
        ]
        self._merged = merged
        self._sequence_of: tuple[int, ...] = ()
        self._order: list[int] = []

    def parents(self, records: Iterable[ProviderRecord]) -> Parents:
        """Return the parents of these providers and of all their ancestors, if they matter."""
        found: Parents = {}
        for record in records if self._subtrees else ():
            above: ProviderRecord | None = record
            while above is not None and above.provider.uuid not in found:
                parent = above.provider.parent
                found[above.provider.uuid] = parent
                above = None if parent is None else self._record_of(parent)
        return found

    def is_free(self, options: list[list[ProviderRecord]]) -> bool:
        """Are the choices independent of each other, so that all combinations are valid?

        False also if this is not obvious. Positions in trees must not matter, see `relates`.
        """
        for numbers in self._competing:
            there = [record.provider.uuid for number in numbers for record in options[number]]
            if len(set(there)) < len(there):
                return False
        return all(
            any(all(_has(record, names) for record in options[n]) for n in self._unsuffixed)
            for names in self._needs
        )

    def combine(
        self, options: list[list[ProviderRecord]], parents: Parents, budget: Budget
    ) -> Iterator[Pick | None]:
        """Yield the candidates of one anchor, one by one, without those of other anchors.

        None: a pause is due. The iterator ends early if the steps are used up; the budget then
        shows this.

        Args:
            options: The providers that can serve each term.
            parents: Of the providers, as they were when the anchor was opened.
            budget: Of the search that the anchor is part of.
        """
        seats: dict[ProviderId, Seat] = {}
        for records in options:
            for record in records:
                if record.provider.uuid not in seats:
                    gives = self._gives(record) if self._needs else 0
                    seats[record.provider.uuid] = Seat(record, 1 << len(seats), gives)
            budget.tire(len(records))
            if budget.is_rest_due:
                yield None
        if self.relates:
            _relate(seats, parents)
            budget.steps += len(seats)
        tops: list[int] = []
        if self._subtrees:
            options, tops = yield from self._related(seats, options, budget)
        if not all(options):
            return
        sums = Sums()
        choices = yield from self._ordered(seats, options, sums, budget)
        everyone = list(seats.values())
        yield from Walk(self._conditions, choices, everyone, tops, sums, self._merged, budget).run()

    def _related(
        self, seats: dict[ProviderId, Seat], options: list[list[ProviderRecord]], budget: Budget
    ) -> Steps[tuple[list[list[ProviderRecord]], list[int]]]:
        """Keep the options that are near enough to those of the terms that they are related to.

        Also return the seats that may be the top of each same_subtree condition.
        """
        by_bit = {seat.bit: seat for seat in seats.values()}
        bits = [sum([seats[record.provider.uuid].bit for record in each]) for each in options]
        before = bits.copy()
        tops = [0] * len(self._subtrees)
        waiting = dict.fromkeys(range(len(tops)))
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            these = self._members[number]
            every = reduce(or_, [bits[term] for term in these])
            tops[number] = reach = 0
            for bit in bits_of(every):
                below = by_bit[bit].below
                if all(bits[term] & below for term in these):
                    tops[number] |= bit
                    reach |= below
            budget.steps += len(these) + every.bit_count()
            if budget.is_rest_due:
                yield
            for term in these:
                if bits[term] & ~reach:
                    bits[term] &= reach
                    # The other conditions of this term may now exclude more.
                    waiting.update(dict.fromkeys(n for n in self._lines[term] if n != number))
        return [
            each
            if left == had
            else [record for record in each if seats[record.provider.uuid].bit & left]
            for each, left, had in zip(options, bits, before, strict=True)
        ], tops

    def _gives(self, record: ProviderRecord) -> int:
        """Return which required trait sets of the unsuffixed group a provider meets, as bits."""
        gives = 0
        for number, names in enumerate(self._needs):
            if _has(record, names):
                gives |= 1 << number
        return gives

    def _ordered(
        self,
        seats: dict[ProviderId, Seat],
        options: list[list[ProviderRecord]],
        sums: Sums,
        budget: Budget,
    ) -> Steps[list[Choice]]:
        """Return the terms with the fewest seats first, each with what later ones can add."""
        choices: list[Choice] = []
        known: dict[object, dict[Seat, int]] = {}
        gives_later = 0
        later = (0,) * len(self._subtrees)
        for number in reversed(self._sequence([len(each) for each in options], budget.turn)):
            term, lines = self._terms[number], self._lines[number]
            here = [seats[record.provider.uuid] for record in options[number]]
            here = in_turn(here, budget.turn)
            bits = 0
            for seat in here:
                bits |= seat.bit
            if self._exclusive:
                claiming = []
                for first in range(0, len(here), CLAIMING):
                    some = here[first : first + CLAIMING]
                    claiming += self._claiming(some, term, len(seats), sums, known)
                    budget.tire(len(some) * (1 + len(self._contends[number])))
                    if budget.is_rest_due:
                        yield
            else:
                claiming = [(seat, 0) for seat in here]
            choices.append(
                Choice(
                    number, term, self._contends[number], claiming, bits, lines, gives_later, later
                )
            )
            if self._conditions.special:
                if not term.is_suffixed:
                    for seat in here:
                        gives_later |= seat.gives
                later = tuple(b | bits if n in lines else b for n, b in enumerate(later))
        choices.reverse()
        return choices

    def _sequence(self, sizes: list[int], turn: int) -> list[int]:
        """Return the order of the terms; most anchors of a query have the same."""
        key = (*sizes, turn)
        if key != self._sequence_of:
            self._order = sequence(self._terms, sizes, self._lines, turn)
            self._sequence_of = key
        return self._order

    def _claiming(
        self,
        seats: list[Seat],
        term: GroupPart,
        count: int,
        sums: Sums,
        known: dict[object, dict[Seat, int]],
    ) -> list[tuple[Seat, int]]:
        """Return these seats with their claims for a term; `known`: claims by kind of term."""
        kind = (term.is_suffixed, frozenset(term.resources.keys() & self._conditions.contended))
        claims = known.setdefault(kind, {})
        for seat in seats:
            if seat not in claims:
                claims[seat] = self._claims(seat, term, count, sums)
        return [(seat, claims[seat]) for seat in seats]

    def _claims(self, seat: Seat, term: GroupPart, seats: int, sums: Sums) -> int:
        """Return the claims of this seat for this term; other choices must not share them."""
        claims = seat.bit if self._conditions.isolate and term.is_suffixed else 0
        for number, (name, amounts) in enumerate(self._conditions.contended.items(), 1):
            # If the two smallest amounts do not fit together, no two do.
            if name in term.resources and not sums.fit(seat, name, amounts[0] + amounts[1]):
                claims |= seat.bit << (number * seats)
        return claims


def _has(record: ProviderRecord, names: frozenset[str]) -> bool:
    """Does a provider have any of these traits?"""
    return not names.isdisjoint(record.tags.traits)


def _relate(seats: dict[ProviderId, Seat], parents: Parents) -> None:
    """Set for every seat which others are above it and which are in its tree."""
    trees: Counter[ProviderId] = Counter()
    for seat in seats.values():
        trees[seat.record.provider.root] |= seat.bit
    lineages: dict[ProviderId, int] = {}
    for seat in seats.values():
        seat.kin = trees[seat.record.provider.root] & ~seat.bit
        line: list[ProviderId] = []
        uuid: ProviderId | None = seat.uuid
        while uuid is not None and uuid not in lineages:
            line.append(uuid)
            uuid = parents.get(uuid)
        lineage = 0 if uuid is None else lineages[uuid]
        for each in reversed(line):
            if each in seats:
                lineage |= seats[each].bit
            lineages[each] = lineage
        seat.lineage = lineages[seat.uuid]
    by_bit = {seat.bit: seat for seat in seats.values()}
    for seat in seats.values():
        for bit in bits_of(seat.lineage):
            by_bit[bit].below |= seat.bit


def _some(amounts: list[int]) -> list[int]:
    """Return at most `LEASTS_MAX` of the amounts, evenly spread, including the first."""
    return amounts[:: -(-len(amounts) // LEASTS_MAX)]
