"""Machines: trees of providers, with the figures of the whole tree, and what state each is in."""

from enum import IntEnum
from typing import NamedTuple

from moorage.core.fleet.model import Agent, Liveness, Policy, Readiness, State
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity, divisor
from moorage.core.ledger.compact_inventories import OWN, Inventories, InventoryFigures
from moorage.core.ledger.model import Provider, ProviderRecord
from moorage.core.ledger.search.capacity_sums import Snapshot
from moorage.core.ledger.search.steps import Steps

MACHINES_MAX = 20_000
"""Machines on one map; it says how many it leaves out."""

A_STEP = 128
"""Machines in one piece of work."""

FULL = 200
"""A share is counted in half percents: this is all of it."""

NONE = 255
"""Instead of a share: the machine has nothing of the class."""


class Condition(IntEnum):
    """What a reader must know of a machine first; the worst one counts."""

    NO_AGENT = 0
    FINE = 1
    LATE = 2
    LOST = 3
    FAILING = 4
    DRAINED = 5
    PREPARING = 6
    GONE = 7


def condition(agent: Agent | None, root: Provider) -> Condition:
    """Return the condition of a machine."""
    if agent is None:
        return Condition.NO_AGENT if root.withheld is None else Condition.DRAINED
    if agent.state is State.DECOMMISSIONED or agent.policy is Policy.EXPUNGED:
        return Condition.GONE
    if agent.liveness is not Liveness.FRESH:
        return Condition.LATE if agent.liveness is Liveness.LATE else Condition.LOST
    if agent.failure is not None or agent.readiness in (Readiness.FAILED, Readiness.DEGRADED):
        return Condition.FAILING
    if agent.policy is Policy.NO_PROVISION:
        return Condition.DRAINED
    return Condition.FINE if agent.readiness is Readiness.READY else Condition.PREPARING


def share(part: float, whole: float) -> int:
    """Return a share in half percents; only nothing is 0, and only all of it is `FULL`."""
    if part <= 0:
        return 0
    if part >= whole:
        return FULL
    return min(FULL - 1, max(1, round(part * FULL / whole)))


class ClassSum:
    """What the tree of a machine has of one class. `held_back` are its reserved units.

    `allowed` is its capacity as if all of it were offered.
    """

    __slots__ = ("allowed", "held_back", "total", "units", "used")

    def __init__(self) -> None:
        self.total = self.held_back = self.units = self.used = 0
        self.allowed = 0.0

    def add(self, offer: InventoryFigures, used: int) -> None:
        """Add the inventory of one provider of the tree."""
        held_back = offer.reserved
        self.total += offer.total
        self.held_back += held_back
        self.units += offer.units
        self.used += used
        self.allowed += capacity(offer.total, offer.reserved, offer.allocation_ratio)


class Machine(NamedTuple):
    """A tree of providers. Its shares are those of its fullest class, the least offered one, ...

    `total`, `units` and `taken` are the sums of the chosen class; 0 without one.
    """

    root: Provider
    used: int
    offered: int
    reserved: int
    total: int
    units: int
    taken: int
    traits: frozenset[str]
    aggregates: frozenset[str]


def _machine(root: Provider, tree: list[ProviderRecord], wanted: str | None) -> Machine:
    """Return the machine of these providers, with the sums of one class, or without."""
    sums: dict[str, ClassSum] = {}
    for record in tree:
        held = record.inventories
        assert isinstance(held, Inventories)  # those of a catalog are packed
        for offer, used in zip(held.offers, held.own_figures()[::OWN], strict=True):
            if wanted is None or offer.name == wanted:
                found = sums.get(offer.name)
                if found is None:
                    found = sums[offer.name] = ClassSum()
                found.add(offer, used)
    traits, aggregates = tree[0].tags.traits, tree[0].tags.aggregates
    if len(tree) > 1:
        traits = traits.union(*(one.tags.traits for one in tree))
        aggregates = aggregates.union(*(one.tags.aggregates for one in tree))
    used, offered, reserved = (0, FULL, 0) if sums else (NONE, NONE, NONE)
    for one in sums.values():
        used = max(used, share(one.used, divisor(one.units)))
        offered = min(offered, share(one.units, max(int(one.allowed), 1)))
        reserved = max(reserved, share(one.held_back, max(one.total, 1)))
    chosen = ClassSum() if wanted is None else sums.get(wanted, ClassSum())
    figures = (used, offered, reserved, chosen.total, chosen.units, chosen.used)
    return Machine(root, *figures, traits, aggregates)


class _Alike(NamedTuple):
    """What machines of one provider with the same offers have in common, computed once."""

    first: Machine
    places: list[tuple[int, float]]
    """Where the used units of each class are in the own figures, and what they are a share of."""


class _Machines:
    """Makes machines from trees."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        # By the id of the offers: the records keep them alive.
        self._alike: dict[int, _Alike] = {}

    def made(self, root: Provider, tree: list[ProviderRecord]) -> Machine:
        """Return the machine of a tree."""
        if len(tree) > 1:
            return _machine(root, tree, self._wanted)
        held, tags = tree[0].inventories, tree[0].tags
        assert isinstance(held, Inventories)  # those of a catalog are packed
        alike = self._alike.get(id(held.offers))
        if alike is None:
            places = [
                (OWN * number, divisor(offer.units))
                for number, offer in enumerate(held.offers)
                if self._wanted is None or offer.name == self._wanted
            ]
            alike = _Alike(_machine(root, tree, self._wanted), places)
            self._alike[id(held.offers)] = alike
            return alike.first
        first, own = alike.first, held.own_figures()
        used = max([share(own[at], whole) for at, whole in alike.places], default=NONE)
        taken = 0 if self._wanted is None or not alike.places else own[alike.places[0][0]]
        return Machine(
            *(root, used, first.offered, first.reserved, first.total, first.units, taken),
            *(tags.traits, tags.aggregates),
        )


def machines_of(records: Snapshot, wanted: str | None) -> Steps[tuple[list[Machine], int]]:
    """Return the machines, and how many there are beyond the limit."""
    making = _Machines(wanted)
    found: list[Machine] = []
    left_out = 0
    for chunk in records:  # a tree is never split over chunks
        trees: dict[ProviderId, list[ProviderRecord]] = {}
        for record in chunk:
            if record is not None:
                trees.setdefault(record.provider.root, []).append(record)
        yield
        for tree in trees.values():
            root = next(one.provider for one in tree if one.provider.parent is None)
            if len(found) == MACHINES_MAX:
                left_out += 1
                continue
            found.append(making.made(root, tree))
            if len(found) % A_STEP == 0:
                yield
    return found, left_out
