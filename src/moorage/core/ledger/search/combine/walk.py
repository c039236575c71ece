"""The walk over all combinations at one anchor: depth first, lazy, with a look-ahead.

A branch is left as soon as nothing below it can be valid, so products of groups and providers are
never enumerated. After the first dead end, the walk looks ahead (`matching.py`) before it goes
deeper: if parts exclude one another from providers, as with `isolate` or with providers of one
unit, the next candidate is then a polynomial number of steps away, or there is none.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import has_room, units_ok
from moorage.core.ledger.model import SHARING_TRAIT, ProviderRecord
from moorage.core.ledger.requests import Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine.matching import Matching
from moorage.core.ledger.search.groups import GroupPart
from moorage.core.ledger.search.steps import Steps

WIDE = 16
"""Copying this many parts of a combination costs as much as a step."""


LEASTS_MAX = 8
"""Amounts of one class for which the look-ahead tests the terms that need at least as much.

With more of them it would take longer than the dead ends that it avoids.
"""


class Conditions(NamedTuple):
    """The conditions of a query on all its parts together."""

    isolate: bool
    """Suffixed groups are served by different providers."""
    one_per_tree: bool
    subtrees: int
    """The number of same_subtree conditions."""
    needs: int
    """A bit for each trait set that the unsuffixed group requires."""
    contended: dict[str, list[int]]
    """The classes that several terms ask for, with the amounts, smallest first."""
    leasts: dict[str, list[int]]
    """For each of these classes some of the amounts: at most `LEASTS_MAX`, the smallest first."""

    special: bool
    """Some condition needs a `State`."""


class Seat:
    """One provider that may be chosen at this anchor. Sets of seats are integers, a bit each."""

    __slots__ = ("bit", "gives", "kin", "lineage", "record", "roams", "uuid")

    def __init__(self, record: ProviderRecord, bit: int, gives: int) -> None:
        self.record = record
        self.uuid = record.provider.uuid
        self.roams = SHARING_TRAIT in record.tags.traits
        self.bit = bit
        self.gives = gives
        """Which required trait sets of the unsuffixed group it meets."""
        self.lineage = bit
        """The seat itself and all seats above it in its tree."""
        self.kin = 0
        """All other seats of its tree."""


class Choice(NamedTuple):
    """One term with the seats that may serve it, and what later choices can still add."""

    number: int
    """Of the term in the query."""
    term: GroupPart
    contends: dict[str, int]
    """Its amounts of classes that other terms also ask for."""
    seats: list[tuple[Seat, int]]
    """Seats that may serve it, with claims: choices with a common claim exclude one another."""
    bits: int
    """The same seats as a set."""
    lines: tuple[int, ...]
    """Which of the query's same_subtree conditions the term is in."""
    gives_later: int
    seats_later: tuple[int, ...]
    """By same_subtree condition: seats that later choices may put into it."""


class State(NamedTuple):
    """The effect of the choices so far on the conditions that few queries have."""

    given: int
    """Which required trait sets of the unsuffixed group are met."""
    lines: tuple[tuple[int, int], ...]
    """By same_subtree condition: the seats at or above all its chosen ones; the chosen ones."""
    allocated: int
    """The seats that give resources."""


Held = dict[ProviderId, dict[str, int]]
"""Amounts of the classes that several terms ask for, by provider."""

Node = tuple[Held, Pick, int, State, bool]
"""A combination of the first few choices: their amounts, their providers, their joint claims, their
state, and whether all providers are sharing ones."""


class Merged:
    """The candidates that several anchors may give.

    They are those of only sharing providers and, after a change, also all others.
    """

    def __init__(self) -> None:
        self._known: set[Pick] = set()
        self.altered = False
        """A catalog with sharing providers has changed: some may have stopped sharing."""

    def fresh(self, pick: Pick) -> bool:
        """Is this the first time that the candidate is found?"""
        if pick in self._known:
            return False
        self._known.add(pick)
        return True


class Sums:
    """Whether summed amounts are still allowed on one provider; the answers are cached."""

    def __init__(self) -> None:
        self._known: dict[tuple[ProviderId, str, int], bool] = {}

    def fit(self, seat: Seat, name: str, amount: int) -> bool:
        """Is a sum of several terms' amounts allowed for one class of a provider?"""
        key = (seat.uuid, name, amount)
        known = self._known.get(key)
        if known is None:
            inventory = seat.record.inventories[name]
            # Minimum and step size apply to each part alone, the maximum also to the sum.
            whole = bool(units_ok(1, inventory.max_unit, 1, amount))
            known = self._known[key] = whole and has_room(inventory, amount)
        return known

    def together(
        self, seat: Seat, held: dict[str, int], more: dict[str, int]
    ) -> dict[str, int] | None:
        """Add up amounts on one provider; None: the sum does not fit."""
        total = held.copy()
        for name, amount in more.items():
            total[name] = total.get(name, 0) + amount
            if name in held and not self.fit(seat, name, total[name]):
                return None
        return total


class Walk:
    """The walk over the choices of one anchor."""

    def __init__(
        self,
        conditions: Conditions,
        choices: list[Choice],
        seats: dict[int, Seat],
        sums: Sums,
        merged: Merged,
        budget: Budget,
    ) -> None:
        self._conditions = conditions
        self._choices = choices
        self._seats = seats
        self._sums = sums
        self._merged = merged
        self._budget = budget

    def run(self) -> Iterator[Pick | None]:
        """Yield the candidates one by one, and None wherever a pause is due.

        It ends early if the steps are used up; the budget then shows this.
        """
        budget, choices, merged = self._budget, self._choices, self._merged
        last, whole = len(choices) - 1, budget.whole
        # A direct path down, without dead ends, must always be within the bound.
        patience = budget.anchor
        for depth, choice in enumerate(choices):
            patience += len(choice.seats) * (1 + len(choice.lines) + depth // WIDE)
        numbers = [choice.number for choice in choices]
        places = sorted(range(len(choices)), key=numbers.__getitem__)
        nowhere = (-1, 0)  # no seat is chosen: all seats count as above
        root: Node = ({}, (), 0, State(0, (nowhere,) * self._conditions.subtrees, 0), True)
        if not (yield from self._completable(0, root)):
            return
        end = min(budget.steps + patience, whole)
        levels, found, before = [self._level(0, root)], 0, [0]
        careful = False
        while levels:
            if budget.steps > end:
                budget.cut = True
                return
            depth = len(levels)
            for node in levels[-1]:
                if node is None:
                    yield None
                    if budget.steps > end:
                        break
                elif depth > last:
                    found += 1
                    chosen = node[1]
                    pick = tuple([chosen[place] for place in places])
                    if node[4] or merged.altered:
                        budget.steps += 1
                        if not merged.fresh(pick):
                            if budget.steps > end:
                                break
                            if budget.steps >= budget.pause_at:
                                yield None
                            continue
                    yield pick
                    end = min(budget.steps + patience, whole)
                elif not careful or depth == last or (yield from self._completable(depth, node)):
                    budget.steps += depth // WIDE
                    levels.append(self._level(depth, node))
                    before.append(found)
                    break
                elif budget.steps > end:
                    break
            else:
                levels.pop()
                # After a dead end, look ahead before going deeper.
                careful = before.pop() == found or careful

    def _level(self, depth: int, node: Node) -> Iterator[Node | None]:
        """Yield the node with every possible seat for the term at `depth`; None: pause."""
        choice, sums, special = self._choices[depth], self._sums, self._conditions.special
        contends, budget, cost = choice.contends, self._budget, 1 + len(choice.lines)
        held, chosen, taken, state, roams = node
        for seat, claims in choice.seats:
            budget.steps += cost
            if budget.steps >= budget.pause_at:
                yield None
            if claims & taken:
                continue
            after = self._after(state, choice, seat) if special else state
            if after is None:
                continue
            holding = held
            if contends:
                uuid = seat.uuid
                before = held.get(uuid)
                given = contends if before is None else sums.together(seat, before, contends)
                if given is None:
                    continue
                holding = held.copy()
                holding[uuid] = given
            yield holding, (*chosen, seat.uuid), taken | claims, after, roams and seat.roams

    def _completable(self, depth: int, node: Node) -> Steps[bool]:
        """May the terms from `depth` on still be served together?

        A necessary condition: it tests each class, and isolation, separately.
        """
        if not (self._conditions.isolate or self._conditions.contended):
            return True
        held, _, taken, _, _ = node
        rest = self._choices[depth:]
        if self._conditions.isolate:
            parts = [choice for choice in rest if choice.term.is_suffixed]
            # The lowest bits of the claims are the seats claimed by suffixed terms.
            if not (yield from self._matched(parts, taken, lambda _: 1)):
                return False
        for name, leasts in self._conditions.leasts.items():
            # Larger amounts fit less often, so they are also tested separately.
            for least in leasts:
                parts = [each for each in rest if each.term.resources.get(name, 0) >= least]
                amounts = list(accumulate(sorted(part.term.resources[name] for part in parts)))
                self._budget.tire(len(parts))
                if not (yield from self._matched(parts, 0, self._shares(name, amounts, held))):
                    return False
        return True

    def _matched(self, parts: list[Choice], taken: int, room: Callable[[int], int]) -> Steps[bool]:
        """Can all parts be served, given the room of each seat?"""
        budget = self._budget
        matching, counted = Matching([part.bits for part in parts], taken, room), 0
        for number in range(len(parts)):
            served = matching.serve(number)
            budget.steps += matching.steps - counted
            counted = matching.steps
            if not served:
                return False
            if budget.steps >= budget.pause_at:
                yield
        return True

    def _shares(self, name: str, amounts: list[int], held: Held) -> Callable[[int], int]:
        """Return a function: how many terms a seat can serve with a class, smallest amounts first.

        `amounts`: the sum of one term, of two terms, and so on.
        """
        rooms: dict[int, int] = {}

        def room(bit: int) -> int:
            count = rooms.get(bit)
            if count is None:
                seat = self._seats[bit]
                used = held.get(seat.uuid, _NOTHING).get(name, 0)
                count = 0
                while count < len(amounts) and self._sums.fit(seat, name, used + amounts[count]):
                    count += 1
                rooms[bit] = count
            return count

        return room

    def _after(self, state: State, choice: Choice, seat: Seat) -> State | None:
        """Return the state after a choice; None: no later choice can make it valid."""
        given, allocated = state.given, state.allocated
        if not choice.term.is_suffixed:
            given |= seat.gives
        if given | choice.gives_later != self._conditions.needs:
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
        if self._conditions.one_per_tree and choice.term.resources:
            if allocated & seat.kin:
                return None
            allocated |= seat.bit
        return State(given, lines, allocated)


_NOTHING: dict[str, int] = {}
