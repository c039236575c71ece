"""Combine the groups of a query over the providers of one anchor: what may be chosen for what.

The choices are laid out here, those with the fewest providers first; `walk.py` walks them.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.requests import CandidateQuery, Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.groups import Term, shared_needs
from moorage.core.ledger.search.walk import Choice, Conditions, Merged, Seat, Sums, Walk


class Combiner:
    """Combines the terms of one query; `combine` is called for every anchor."""

    def __init__(
        self,
        query: CandidateQuery,
        terms: list[Term],
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
        self._conditions = Conditions(
            isolate=query.group_policy == "isolate",
            one_per_tree=not query.nested,
            subtrees=len(query.same_subtree),
            needs=(1 << len(self._needs)) - 1,
            contended={name: sorted(each) for name, each in amounts.items() if len(each) > 1},
            special=bool(self._needs or query.same_subtree or not query.nested),
        )
        self._exclusive = bool(self._conditions.isolate or self._conditions.contended)
        self._lines = [
            tuple(n for n, names in enumerate(query.same_subtree) if term.suffix in names)
            for term in terms
        ]
        self._contends = [
            {name: n for name, n in term.resources.items() if name in self._conditions.contended}
            for term in terms
        ]
        self._merged = merged

    def combine(self, options: list[list[ProviderRecord]], budget: Budget) -> Iterator[Pick]:
        """Return the candidates of one anchor, one by one, without those of other anchors.

        The iterator ends early when the steps are used up; the budget then says so.

        Args:
            options: The providers that can serve each term.
            budget: Of the search that the anchor is part of.
        """
        seats = self._seats(options)
        if self._subtrees or self._conditions.one_per_tree:
            self._relate(seats)
            budget.steps += len(seats)
        sums = Sums()
        choices = self._ordered(seats, options, sums)
        by_bit = {seat.bit: seat for seat in seats.values()} if self._exclusive else {}
        return Walk(self._conditions, choices, by_bit, sums, self._merged, budget).run()

    def _seats(self, options: list[list[ProviderRecord]]) -> dict[ProviderId, Seat]:
        seats: dict[ProviderId, Seat] = {}
        for records in options:
            for record in records:
                if record.provider.uuid not in seats:
                    gives = 0
                    for number, names in enumerate(self._needs):
                        if not names.isdisjoint(record.tags.traits):
                            gives |= 1 << number
                    seats[record.provider.uuid] = Seat(record, 1 << len(seats), gives)
        return seats

    def _relate(self, seats: dict[ProviderId, Seat]) -> None:
        """Tell every seat which others are above it and which are of its tree."""
        trees: Counter[ProviderId] = Counter()
        for seat in seats.values():
            trees[seat.record.provider.root] |= seat.bit
        for seat in seats.values():
            seat.kin = trees[seat.record.provider.root] & ~seat.bit
            above = seat.record.provider.parent
            while above is not None:
                if above in seats:
                    seat.lineage |= seats[above].bit
                record = self._record_of(above)
                above = None if record is None else record.provider.parent

    def _ordered(
        self, seats: dict[ProviderId, Seat], options: list[list[ProviderRecord]], sums: Sums
    ) -> list[Choice]:
        """Put the terms with the fewest seats first, and say what the later ones can add."""
        choices: list[Choice] = []
        gives_later = 0
        later = (0,) * len(self._subtrees)
        backwards = reversed(range(len(options)))
        for number in sorted(backwards, key=lambda n: len(options[n]), reverse=True):
            term, lines = self._terms[number], self._lines[number]
            here = [seats[record.provider.uuid] for record in options[number]]
            bits = 0
            for seat in here:
                bits |= seat.bit
            if self._exclusive:
                claiming = [(seat, self._claims(seat, term, len(seats), sums)) for seat in here]
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

    def _claims(self, seat: Seat, term: Term, seats: int, sums: Sums) -> int:
        """Return what nobody else may claim once this seat serves this term."""
        claims = seat.bit if self._conditions.isolate and term.is_suffixed else 0
        for number, (name, amounts) in enumerate(self._conditions.contended.items(), 1):
            # If even the two smallest amounts do not fit together, no two do.
            if name in term.resources and not sums.fit(seat, name, amounts[0] + amounts[1]):
                claims |= seat.bit << (number * seats)
        return claims
