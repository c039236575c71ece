"""Whether the parts that are left may still be served after some choices: a necessary condition.

It restricts the parts of every same_subtree condition to the seats that are still below one of its
possible tops, then matches parts with seats, for each class and for isolation.

The matching is bipartite, by augmenting paths; a seat may be matched several times. It takes
polynomial time, while trying all combinations takes exponential time.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine.choices import (
    Choice,
    Conditions,
    Held,
    Node,
    Seat,
    State,
    Sums,
    bits_of,
)
from moorage.core.ledger.search.steps import Steps


class Matching:
    """Parts matched with seats. A seat is an integer with one bit, a set of seats has several.

    Args:
        options: For each part the seats that may serve it.
        taken: Seats that can serve no part.
        room: How many parts a seat can serve.
    """

    def __init__(self, options: Sequence[int], taken: int, room: Callable[[int], int]) -> None:
        self._options = options
        self._full = taken
        self._shut = taken
        self._room = room
        self._served: dict[int, list[int]] = {}
        self._seen = 0
        self.steps = 0
        """The number of seats that were examined."""

    def complete(self) -> bool:
        """Can all parts be served at the same time?"""
        return all(map(self.serve, range(len(self._options))))

    def serve(self, part: int) -> bool:
        """Match one more part, besides those that are already matched."""
        self._seen = self._shut
        return self._serve(part)

    def _serve(self, part: int) -> bool:
        """As `serve`: parts that are already matched may be moved, but are never dropped."""
        options = self._options[part]
        while free := options & ~self._full:
            seat = free & -free
            self.steps += 1
            served = self._served.setdefault(seat, [])
            room = self._room(seat)
            if len(served) + 1 >= room:
                self._full |= seat
            if room:
                served.append(part)
                return True
            self._shut |= seat
        while left := options & ~self._seen:
            seat = left & -left
            self._seen |= seat
            served = self._served.get(seat, [])
            for place, other in enumerate(served):
                self.steps += 1
                if self._serve(other):
                    served[place] = part
                    return True
        return False


_Part = tuple[Choice, int]
"""A choice, and the seats that may still serve it."""


class LookAhead:
    """Tests nodes of the walk over the choices of one anchor.

    Args:
        conditions: Of the query.
        choices: In the order of the walk.
        seats: All seats of the anchor.
        sums: Of amounts on one provider.
        budget: Of the search.
    """

    def __init__(
        self,
        conditions: Conditions,
        choices: list[Choice],
        seats: list[Seat],
        sums: Sums,
        budget: Budget,
    ) -> None:
        self._conditions = conditions
        self._choices = choices
        tests = conditions.isolate or conditions.contended or conditions.subtrees
        self._seats = {seat.bit: seat for seat in seats} if tests else {}
        self._sums = sums
        self._budget = budget

    def completable(self, depth: int, node: Node) -> Steps[bool]:
        """May the terms from `depth` on still be served together?

        It tests each class, and isolation, separately.
        """
        conditions = self._conditions
        if not self._seats:
            return True
        held, _, taken, state, _ = node
        rest = self._open(depth, state)
        if rest is None:
            return False
        if conditions.isolate:
            parts = [part for part in rest if part[0].term.is_suffixed]
            # The lowest bits of the claims are the seats claimed by suffixed terms.
            if not (yield from self._matched(parts, taken, lambda _: 1)):
                return False
        for name, leasts in conditions.leasts.items():
            # Larger amounts fit less often, so they are also tested separately.
            for least in leasts:
                parts = [each for each in rest if each[0].term.resources.get(name, 0) >= least]
                amounts = list(accumulate(sorted(part.term.resources[name] for part, _ in parts)))
                self._budget.tire(len(parts))
                if not (yield from self._matched(parts, 0, self._shares(name, amounts, held))):
                    return False
        return True

    def _open(self, depth: int, state: State) -> list[_Part] | None:
        """Return the choices from `depth` on with the seats that are not too far apart.

        None: some choice has none. The other conditions are not tested here.
        """
        rest = self._choices[depth:]
        later = self._choices[depth - 1].seats_later if depth else ()
        reach: dict[int, int] = {}
        for number, (above, chosen) in enumerate(state.lines):
            # A condition without a chosen seat is still open to all of its seats.
            if chosen and later[number]:
                reach[number] = self._below(above & (chosen | later[number]))
        if not reach:
            return [(choice, choice.bits) for choice in rest]
        self._budget.steps += len(reach)
        self._budget.tire(len(rest))
        found = []
        for choice in rest:
            bits = choice.bits
            for number in choice.lines:
                bits &= reach.get(number, bits)
            if not bits:
                return None
            found.append((choice, bits))
        return found

    def _below(self, tops: int) -> int:
        """Return these seats and all below them."""
        return reduce(or_, [self._seats[top].below for top in bits_of(tops)])

    def _matched(self, parts: list[_Part], taken: int, room: Callable[[int], int]) -> Steps[bool]:
        """Can all parts be served, given the room of each seat?"""
        budget = self._budget
        matching, counted = Matching([bits for _, bits in parts], taken, room), 0
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


_NOTHING: dict[str, int] = {}
