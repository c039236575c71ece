"""The data of a walk over the combinations of one anchor: seats, choices, sums, and its state."""

from collections.abc import Iterator
from typing import NamedTuple

from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import has_room, units_ok
from moorage.core.ledger.model import SHARING_TRAIT, ProviderRecord
from moorage.core.ledger.requests import Pick
from moorage.core.ledger.search.groups import GroupPart

LEASTS_MAX = 8
"""Amounts of one class for which the look-ahead tests the terms that need at least as much.

With more of them it would take longer than the dead ends that it avoids.
"""


def bits_of(seats: int) -> Iterator[int]:
    """Yield the bit of each seat in a set."""
    while seats:
        yield seats & -seats
        seats &= seats - 1


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

    __slots__ = ("below", "bit", "gives", "kin", "lineage", "record", "roams", "uuid")

    def __init__(self, record: ProviderRecord, bit: int, gives: int) -> None:
        self.record = record
        self.uuid = record.provider.uuid
        self.roams = SHARING_TRAIT in record.tags.traits
        self.bit = bit
        self.gives = gives
        """Which required trait sets of the unsuffixed group it meets."""
        self.lineage = bit
        """The seat itself and all seats above it in its tree."""
        self.below = bit
        """The seat itself and all seats below it."""
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
