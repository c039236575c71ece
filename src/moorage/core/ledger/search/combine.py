"""Combine the groups of a query over the providers of one anchor, one choice after another.

A tree of choices is walked depth first; a branch is left as soon as nothing below it can hold, so
that products of groups and providers are never spelled out.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import has_room, shown_capacity, units_ok
from moorage.core.ledger.model import SHARING_TRAIT, ProviderRecord
from moorage.core.ledger.requests import Candidate, CandidateQuery
from moorage.core.ledger.search.groups import Term, shared_needs
from moorage.core.limits import CANDIDATE_STEPS_MAX


class Enough(Exception):
    """The search may stop: it has as many candidates as were asked for, or took too long."""


class Found:
    """The candidates of one search so far, without duplicates, up to its limit."""

    def __init__(self, limit: int | None, steps_max: int | None = None) -> None:
        self.candidates: list[Candidate] = []
        self.exhausted = True
        self.steps = 0
        self.limit = limit
        self._steps_max = CANDIDATE_STEPS_MAX if steps_max is None else steps_max
        self._roaming: set[object] = set()

    def add(self, candidate: Candidate, roaming: bool = False) -> None:
        """Keep a candidate. Raises Enough at the limit.

        `roaming`: it has sharing providers only, so another anchor may have led to it before.
        """
        if roaming:
            key = (
                frozenset(
                    (u, frozenset(given.items())) for u, given in candidate.allocations.items()
                ),
                frozenset((suffix, frozenset(us)) for suffix, us in candidate.mappings.items()),
            )
            if key in self._roaming:
                return
            self._roaming.add(key)
        self.candidates.append(candidate)
        if len(self.candidates) == self.limit:
            raise Enough

    def count(self, steps: int) -> None:
        """Note the choices that were looked at. Raises Enough beyond the bound of a search."""
        self.steps += steps
        if self.steps > self._steps_max:
            self.exhausted = False
            raise Enough


class Seat:
    """One provider that may be chosen at this anchor. Sets of seats are integers, a bit each."""

    __slots__ = ("alone", "bit", "gives", "kin", "lineage", "record", "roams", "uuid")

    def __init__(self, record: ProviderRecord, bit: int, gives: int) -> None:
        self.record = record
        self.uuid = record.provider.uuid
        self.alone = (self.uuid,)
        self.roams = SHARING_TRAIT in record.tags.traits
        self.bit = bit
        self.gives = gives
        """Which of the unsuffixed group's required sets of traits it meets."""
        self.lineage = bit
        """The seat itself and all seats above it in its tree."""
        self.kin = 0
        """All other seats of its tree."""


class Choice(NamedTuple):
    """One term with the seats that may serve it, and what the choices after it can still add."""

    term: Term
    seats: list[tuple[Seat, ProviderId, int]]
    """Who may serve it, with UUID and claims: choices with a claim in common exclude another."""
    lines: tuple[int, ...]
    """Which of the query's same_subtree conditions the term is in."""
    gives_later: int
    seats_later: tuple[int, ...]
    """By same_subtree condition: seats that later choices may put into it."""


class State(NamedTuple):
    """What the choices made so far mean for the conditions that few queries have."""

    given: int
    """Which of the unsuffixed group's required sets of traits are met."""
    lines: tuple[tuple[int, int], ...]
    """By same_subtree condition: the seats above (or in) all its chosen ones; the chosen ones."""
    allocated: int
    """The seats that give something."""


class Combiner:
    """Combines the terms of one query; `combine` is called for every anchor."""

    def __init__(
        self,
        query: CandidateQuery,
        terms: list[Term],
        found: Found,
        record_of: Callable[[ProviderId], ProviderRecord | None],
    ) -> None:
        self._terms = terms
        self._found = found
        self._record_of = record_of
        self._isolate = query.group_policy == "isolate"
        self._one_per_tree = not query.nested
        self._subtrees = query.same_subtree
        self._needs = shared_needs(query.groups)
        self._need = (1 << len(self._needs)) - 1
        self._has_conditions = bool(self._needs or self._subtrees or self._one_per_tree)
        amounts: dict[str, list[int]] = {}
        for term in terms:
            for name, amount in term.resources.items():
                amounts.setdefault(name, []).append(amount)
        self._contended = {name: sorted(each) for name, each in amounts.items() if len(each) > 1}
        self._choices: list[Choice] = []
        self._sums: dict[tuple[ProviderId, str, int], bool] = {}

    def combine(self, options: list[list[ProviderRecord]]) -> None:
        """Add all candidates of one anchor, given the providers that can serve each term.

        Raises Enough when the search shall stop.
        """
        seats = self._seats(options)
        if not self._may_succeed(seats, options):
            return
        if self._subtrees or self._one_per_tree:
            self._relate(seats)
        self._choices = self._ordered(seats, options)
        no_line = (-1, 0)  # no seat is chosen: every seat is above all of them
        self._choose(0, {}, {}, 0, State(0, (no_line,) * len(self._subtrees), 0), True)

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

    def _may_succeed(
        self, seats: dict[ProviderId, Seat], options: list[list[ProviderRecord]]
    ) -> bool:
        """Leave an anchor early whose providers are too few or too full for all terms together."""
        if self._isolate:
            suffixed = [o for o, t in zip(options, self._terms, strict=True) if t.is_suffixed]
            if len({r.provider.uuid for records in suffixed for r in records}) < len(suffixed):
                return False
        for name, amounts in self._contended.items():
            held = [seat.record.inventories.get(name) for seat in seats.values()]
            rooms = (min(i.max_unit, shown_capacity(i) - i.used) for i in held if i is not None)
            if sum(room for room in rooms if room > 0) < sum(amounts):
                return False
        return True

    def _ordered(
        self, seats: dict[ProviderId, Seat], options: list[list[ProviderRecord]]
    ) -> list[Choice]:
        """Put the terms with the fewest seats first, and say what the later ones can add."""
        order = sorted(range(len(options)), key=lambda number: len(options[number]))
        choices: list[Choice] = []
        gives_later = 0
        later = (0,) * len(self._subtrees)
        for number in reversed(order):
            term = self._terms[number]
            here = [seats[record.provider.uuid] for record in options[number]]
            lines = tuple(n for n, names in enumerate(self._subtrees) if term.suffix in names)
            claiming = [(seat, seat.uuid, self._claims(seat, term, len(seats))) for seat in here]
            choices.append(Choice(term, claiming, lines, gives_later, later))
            bits = 0
            for seat in here:
                bits |= seat.bit
                if not term.is_suffixed:
                    gives_later |= seat.gives
            later = tuple(b | bits if n in lines else b for n, b in enumerate(later))
        choices.reverse()
        return choices

    def _claims(self, seat: Seat, term: Term, seats: int) -> int:
        """Return what nobody else may claim once this seat serves this term."""
        claims = seat.bit if self._isolate and term.is_suffixed else 0
        for number, (name, amounts) in enumerate(self._contended.items(), 1):
            # If even the two smallest amounts do not fit together, no two do.
            if name in term.resources and not self._fit(seat, name, amounts[0] + amounts[1]):
                claims |= seat.bit << (number * seats)
        return claims

    def _choose(
        self,
        depth: int,
        allocations: dict[ProviderId, dict[str, int]],
        mappings: dict[str, tuple[ProviderId, ...]],
        taken: int,
        state: State,
        roaming: bool,
    ) -> None:
        """Try every seat for the term at `depth`, then the terms after it."""
        choice = self._choices[depth]
        suffix, resources = choice.term.suffix, choice.term.resources
        last = depth + 1 == len(self._choices)
        plain = not self._has_conditions
        self._found.count(len(choice.seats))
        for seat, uuid, claims in choice.seats:
            if claims & taken:
                continue
            held = allocations.get(uuid)
            given = resources if held is None else self._together(seat, held, resources)
            if given is None:
                continue
            after = state if plain else self._after(state, choice, seat)
            if after is None:
                continue
            mapped = mappings.copy()
            if suffix or suffix not in mapped:
                mapped[suffix] = seat.alone
            elif uuid not in mapped[suffix]:
                mapped[suffix] += seat.alone
            allocated = allocations
            if resources:
                allocated = allocations.copy()
                allocated[uuid] = given
            if last:
                self._found.add(Candidate(allocated, mapped), roaming and seat.roams)
            else:
                below = depth + 1, allocated, mapped, taken | claims, after
                self._choose(*below, roaming and seat.roams)

    def _together(
        self, seat: Seat, held: dict[str, int], more: dict[str, int]
    ) -> dict[str, int] | None:
        """Add up amounts on one provider; None: together they are too much for it."""
        total = held.copy()
        for name, amount in more.items():
            if name in total:
                if not self._fit(seat, name, total[name] + amount):
                    return None
                total[name] += amount
            else:
                total[name] = amount
        return total

    def _fit(self, seat: Seat, name: str, amount: int) -> bool:
        """Is the sum of what several terms want of one provider's class still allowed?"""
        key = (seat.uuid, name, amount)
        if key not in self._sums:
            inventory = seat.record.inventories[name]
            # Minimum and steps bind each part by itself; the maximum binds the sum, too.
            whole = bool(units_ok(1, inventory.max_unit, 1, amount))
            self._sums[key] = whole and has_room(inventory, amount)
        return self._sums[key]

    def _after(self, state: State, choice: Choice, seat: Seat) -> State | None:
        """Return the state after a choice; None: no later choice can make it hold."""
        given, allocated = state.given, state.allocated
        if not choice.term.is_suffixed:
            given |= seat.gives
        if given | choice.gives_later != self._need:
            return None
        lines = state.lines
        if choice.lines:
            changed = list(lines)
            for number in choice.lines:
                above, chosen = lines[number][0] & seat.lineage, lines[number][1] | seat.bit
                if not above & (chosen | choice.seats_later[number]):
                    return None
                changed[number] = (above, chosen)
            lines = tuple(changed)
        if self._one_per_tree and choice.term.resources:
            if allocated & seat.kin:
                return None
            allocated |= seat.bit
        return State(given, lines, allocated)
