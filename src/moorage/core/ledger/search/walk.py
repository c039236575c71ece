"""The walk over all combinations at one anchor: depth first, lazily, and never lost in dead ends.

A branch is left as soon as nothing below it can hold, so that products of groups and providers are
never spelled out. Once it has run into a dead end, the walk looks ahead (`matching.py`) before it
goes deeper: where parts exclude one another from providers, as with `isolate` or with providers of
one unit, the next candidate is then a polynomial number of steps away, or there is none.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import has_room, units_ok
from moorage.core.ledger.model import SHARING_TRAIT, ProviderRecord
from moorage.core.ledger.requests import Pick
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.groups import Term
from moorage.core.ledger.search.matching import Matching
from moorage.core.ledger.search.steps import Steps

WIDE = 16
"""Parts of a combination whose copying costs as much as a step."""


LEASTS_MAX = 8
"""Amounts of one class for which it is looked ahead whether the terms that ask for more still fit.

With more, looking ahead would take longer than the dead ends that it avoids.
"""


class Conditions(NamedTuple):
    """What a query demands of all its parts together."""

    isolate: bool
    """Suffixed groups are served by different providers."""
    one_per_tree: bool
    subtrees: int
    """How many same_subtree conditions there are."""
    needs: int
    """A bit for each set of traits that the unsuffixed group requires."""
    contended: dict[str, list[int]]
    """The classes that several terms ask for, with the amounts, smallest first."""
    leasts: dict[str, list[int]]
    """For each of these classes some of the amounts: `LEASTS_MAX` at most, the smallest first."""

    special: bool
    """There is something that only a `State` can tell."""


class Seat:
    """One provider that may be chosen at this anchor. Sets of seats are integers, a bit each."""

    __slots__ = ("bit", "gives", "kin", "lineage", "record", "roams", "uuid")

    def __init__(self, record: ProviderRecord, bit: int, gives: int) -> None:
        self.record = record
        self.uuid = record.provider.uuid
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

    number: int
    """Of the term among those of the query."""
    term: Term
    contends: dict[str, int]
    """What of it other terms ask for, too."""
    seats: list[tuple[Seat, int]]
    """Who may serve it, with claims: choices with a claim in common exclude one another."""
    bits: int
    """The same seats as a set."""
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


Held = dict[ProviderId, dict[str, int]]
"""Amounts of the classes that several terms ask for, by provider."""

Node = tuple[Held, Pick, int, State, bool]
"""A combination of the first few choices: what it holds, who serves them, their claims together,
their state, and whether they are of sharing providers only."""


class Merged:
    """The candidates that several anchors may lead to.

    They are those of sharing providers only and, after a change, all others as well.
    """

    def __init__(self) -> None:
        self._known: set[Pick] = set()
        self.altered = False
        """A fleet with sharing providers has changed: any of them may have stopped sharing."""

    def fresh(self, pick: Pick) -> bool:
        """Is it the first time?"""
        if pick in self._known:
            return False
        self._known.add(pick)
        return True


class Sums:
    """Whether amounts together are still allowed on one provider, looked up once each."""

    def __init__(self) -> None:
        self._known: dict[tuple[ProviderId, str, int], bool] = {}

    def fit(self, seat: Seat, name: str, amount: int) -> bool:
        """Is the sum of what several terms want of one provider's class still allowed?"""
        key = (seat.uuid, name, amount)
        known = self._known.get(key)
        if known is None:
            inventory = seat.record.inventories[name]
            # Minimum and steps bind each part by itself; the maximum binds the sum, too.
            whole = bool(units_ok(1, inventory.max_unit, 1, amount))
            known = self._known[key] = whole and has_room(inventory, amount)
        return known

    def together(
        self, seat: Seat, held: dict[str, int], more: dict[str, int]
    ) -> dict[str, int] | None:
        """Add up amounts on one provider; None: together they are too much for it."""
        total = held.copy()
        for name, amount in more.items():
            total[name] = total.get(name, 0) + amount
            if name in held and not self.fit(seat, name, total[name]):
                return None
        return total


class Walk:
    """One anchor's choices, walked."""

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
        """Yield the candidates one by one, and None wherever a rest is due.

        Ends early when the steps are used up; the budget then says so.
        """
        budget, choices, merged = self._budget, self._choices, self._merged
        last, whole = len(choices) - 1, budget.whole
        # A way straight down, without any dead end, must never be too long.
        patience = budget.anchor
        for depth, choice in enumerate(choices):
            patience += len(choice.seats) * (1 + len(choice.lines) + depth // WIDE)
        numbers = [choice.number for choice in choices]
        places = sorted(range(len(choices)), key=numbers.__getitem__)
        nowhere = (-1, 0)  # no seat is chosen: every seat is above all of them
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
                # A dead end: from now on look ahead before going deeper.
                careful = before.pop() == found or careful

    def _level(self, depth: int, node: Node) -> Iterator[Node | None]:
        """Yield the node with every seat that the term at `depth` may have; None: rest."""
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

        A necessary condition: it looks at one class at a time, and at isolation by itself.
        """
        if not (self._conditions.isolate or self._conditions.contended):
            return True
        held, _, taken, _, _ = node
        rest = self._choices[depth:]
        if self._conditions.isolate:
            parts = [choice for choice in rest if choice.term.is_suffixed]
            # The lowest claims are the seats themselves, claimed by suffixed terms.
            if not (yield from self._matched(parts, taken, lambda _: 1)):
                return False
        for name, leasts in self._conditions.leasts.items():
            # Of larger amounts fewer fit: they are looked at by themselves, too.
            for least in leasts:
                parts = [each for each in rest if each.term.resources.get(name, 0) >= least]
                amounts = list(accumulate(sorted(part.term.resources[name] for part in parts)))
                self._budget.tire(len(parts))
                if not (yield from self._matched(parts, 0, self._shares(name, amounts, held))):
                    return False
        return True

    def _matched(self, parts: list[Choice], taken: int, room: Callable[[int], int]) -> Steps[bool]:
        """Can all parts be served when each seat has room for so many of them?"""
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
        """Return how many terms a seat can serve with a class, the smallest amounts first.

        `amounts`: of one term, of two together, and so on.
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
        """Return the state after a choice; None: no later choice can make it hold."""
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
