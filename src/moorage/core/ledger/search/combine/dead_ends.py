"""The parts left to serve after some choices, in a form that does not name providers.

Two nodes of a walk whose remainders are equal can both be completed, or neither can. So a dead end
is visited once, not once for every order of equal devices: the devices of a machine are usually
alike, and this alone turns an exponential number of dead ends into a few.

A remainder describes every seat by what the remaining choices can see of it: which of them it may
serve, what is left of the classes that several of them ask for, its role in open same_subtree
conditions; and every tree of seats by its top and the multiset of the trees below.
"""

from collections import Counter
from collections.abc import Iterator

from moorage.core.ledger.capacity import largest
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.combine.choices import (
    Choice,
    Conditions,
    Node,
    Seat,
    State,
    bits_of,
)
from moorage.core.ledger.search.steps import Steps

DEAD_ENDS_MAX = 10_000
"""The most dead ends of one anchor that are known at the same time; the others are not noted."""

SERVING = 4
"""Choices of a seat, or seats below it, whose description takes as long as a step."""

DESCRIBING = 256
"""Seats that are described in one piece."""

Remainder = tuple[object, ...]


class DeadEnds:
    """The remainders that were found to be impossible at one anchor.

    Args:
        conditions: Of the query.
        choices: In the order of the walk.
        seats: All seats of the anchor.
        budget: Of the search; describing a seat is a step.
    """

    def __init__(
        self, conditions: Conditions, choices: list[Choice], seats: list[Seat], budget: Budget
    ) -> None:
        self._conditions = conditions
        self._choices = choices
        self._budget = budget
        self._seats = _lowest_first(seats)
        self._place = {seat.uuid: place for place, seat in enumerate(self._seats)}
        self._place_of_bit = {seat.bit: place for place, seat in enumerate(self._seats)}
        self._serving = [
            [number for number, choice in enumerate(choices) if choice.bits & seat.bit]
            for seat in self._seats
        ]
        self._rooms = [
            {
                name: largest(seat.record.inventories[name])
                for name in conditions.contended
                if name in seat.record.inventories
            }
            for seat in self._seats
        ]
        self._views: dict[object, tuple[int, int, tuple[int, ...]]] = {}
        self._above = _parents(self._seats)
        tops = [place for place, above in enumerate(self._above) if above is None]
        if conditions.one_per_tree:
            # Here it matters which trees the seats are in: a node above each joins its seats.
            trees: dict[object, int] = {}
            for place in tops:
                root = self._seats[place].record.provider.root
                self._above[place] = trees.setdefault(root, len(self._seats) + len(trees))
            self._above += [None] * len(trees)
        self._below: list[list[int]] = [[] for _ in self._above]
        for place, above in enumerate(self._above):
            if above is not None:
                self._below[above].append(place)
        self._names: dict[object, int] = {}
        self._bases: dict[int, list[int]] = {}
        self._known: set[Remainder] = set()

    def __contains__(self, remainder: Remainder) -> bool:
        return remainder in self._known

    def note(self, remainder: Remainder) -> None:
        """Note that a remainder is impossible."""
        if len(self._known) < DEAD_ENDS_MAX:
            self._known.add(remainder)

    def remainder(self, depth: int, node: Node) -> Steps[Remainder]:
        """Return what remains after the first `depth` choices."""
        base = self._bases.get(depth)
        if base is None:
            base = self._bases[depth] = yield from self._untouched(depth)
        _, chosen, _, state, _ = node
        roles = self._roles(depth, state)
        touched = {self._place[uuid] for uuid in chosen}.union(roles)
        changed: dict[int, int] = {}
        for place in self._with_all_above(touched):
            label = self._label(depth, place, node, roles)
            below = [changed.get(each, base[each]) for each in self._below[place]]
            changed[place] = self._name(label, below)
        yield from self._worked(sum(1 + len(self._below[place]) // SERVING for place in changed))
        trees = Counter(name for place, name in changed.items() if self._above[place] is None)
        trees.subtract(base[place] for place in changed if self._above[place] is None)
        started = tuple(bool(taken) for _, taken in state.lines)
        return (
            depth,
            state.given,
            started,
            tuple(sorted((name, count) for name, count in trees.items() if count)),
        )

    def _untouched(self, depth: int) -> Steps[list[int]]:
        """Return the name of each tree of seats before any choice, as seen from `depth` on."""
        names: list[int] = []
        for place, below in enumerate(self._below):
            label = self._label(depth, place, None, {})
            names.append(self._name(label, [names[each] for each in below]))
            if place % DESCRIBING == 0:
                yield from self._worked(DESCRIBING)
        return names

    def _worked(self, steps: int) -> Iterator[None]:
        self._budget.steps += steps
        if self._budget.is_rest_due:
            yield

    def _with_all_above(self, places: set[int]) -> list[int]:
        """Return these places and all above them, the lowest first."""
        found: set[int] = set()
        for place in places:
            each: int | None = place
            while each is not None and each not in found:
                found.add(each)
                each = self._above[each]
        return sorted(found)

    def _roles(self, depth: int, state: State) -> dict[int, list[tuple[int, bool]]]:
        """Return the possible tops of same_subtree conditions, and whether each is chosen."""
        roles: dict[int, list[tuple[int, bool]]] = {}
        later = self._choices[depth - 1].seats_later if depth else ()
        for number, (above, chosen) in enumerate(state.lines):
            if not chosen or not later[number]:
                continue
            for top in bits_of(above & (chosen | later[number])):
                role = (number, bool(chosen & top))
                roles.setdefault(self._place_of_bit[top], []).append(role)
        return roles

    def _label(
        self, depth: int, place: int, node: Node | None, roles: dict[int, list[tuple[int, bool]]]
    ) -> object:
        """Return what the choices from `depth` on see of one seat; `node` None: before all."""
        if place >= len(self._seats):
            return None
        if node is None:
            return (self._view(depth, place, (), False), False, False, ())
        seat = self._seats[place]
        held = node[0].get(seat.uuid)
        isolated = self._conditions.isolate and bool(node[2] & seat.bit)
        view = self._view(depth, place, tuple(held.items()) if held else (), isolated)
        allocated = bool(node[3].allocated & seat.bit)
        return (view, isolated, allocated, tuple(roles.get(place, ())))

    def _view(
        self, depth: int, place: int, held: tuple[tuple[str, int], ...], isolated: bool
    ) -> object:
        """Return which of the choices from `depth` on a seat may serve, and with how much."""
        key = (depth, place, held, isolated)
        known = self._views.get(key)
        if known is not None:
            return known
        seat, left = self._seats[place], dict(self._rooms[place])
        for name, amount in held:
            left[name] -= amount
        serves, amounts, gives = 0, dict[str, int](), 0
        for number in self._serving[place]:
            choice = self._choices[number]
            if number < depth or (isolated and choice.term.is_suffixed):
                continue
            if any(amount > left[name] for name, amount in choice.contends.items()):
                continue
            serves |= 1 << number
            if not choice.term.is_suffixed:
                gives = seat.gives
            for name, amount in choice.contends.items():
                amounts[name] = amounts.get(name, 0) + amount
        # More than the remaining choices can take of a seat makes no difference.
        rooms = tuple(min(amount, left[name]) for name, amount in sorted(amounts.items()))
        known = self._views[key] = (serves, gives, rooms)
        self._budget.steps += 1 + len(self._serving[place]) // SERVING
        return known

    def _name(self, label: object, below: list[int]) -> int:
        """Return a number for a tree of seats; equal trees have the same."""
        below.sort()
        return self._names.setdefault((label, tuple(below)), len(self._names))


def _lowest_first(seats: list[Seat]) -> list[Seat]:
    return sorted(seats, key=lambda seat: seat.lineage.bit_count(), reverse=True)


def _parents(seats: list[Seat]) -> list[int | None]:
    """Return the place of the nearest seat above each seat; the lowest seats are first."""
    place_of = {seat.bit: place for place, seat in enumerate(seats)}
    found: list[int | None] = []
    for seat in seats:
        # Of the seats above, the nearest is the one with the most others above it.
        above = [place_of[bit] for bit in bits_of(seat.lineage & ~seat.bit)]
        found.append(min(above, default=None))
    return found
