"""The fleet as columns for the canvas: a byte per machine and figure, as of one revision.

A machine is the root of a tree of providers; its figures are those of its whole tree. It stands in
one group: machines in several aggregates, or with several traits, with those that have the same.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from enum import IntEnum
from heapq import merge
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from moorage.core.fleet.model import Agent, Liveness, Policy, Readiness, State
from moorage.core.ids import ProviderId
from moorage.core.ledger.capacity import capacity, divisor
from moorage.core.ledger.compact_inventories import OWN, Inventories, InventoryFigures
from moorage.core.ledger.model import Provider, ProviderRecord
from moorage.core.ledger.search.capacity_sums import Snapshot
from moorage.core.ledger.search.steps import Steps
from moorage.core.texts import plain

MACHINES_MAX = 20_000
"""Machines on one map; it says how many it leaves out."""

A_STEP = 128
"""Machines in one piece of work."""

FULL = 200
"""A share is counted in half percents: this is all of it."""

NONE = 255
"""Instead of a share: the machine has nothing of the class."""


class Condition(IntEnum):
    """The most important fact about a machine for readers; the worst one counts."""

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
    """The amounts of one class in the tree of a machine. `held_back` are its reserved units.

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
    """The common values of machines of one provider with the same offers, computed once."""

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


Grouping = Literal["name", "aggregate", "trait", "agents"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)

GROUPS_MAX = 500
"""Groups on one map: the largest ones; all smaller ones are shown as one."""

GROUPS_FEW = 60
"""With more groups than this, those of one machine are shown as one."""

NAMES_SHOWN = 3
"""Traits or aggregates in the name of a group; of more it says how many."""

OTHERS = "other groups"


def name_prefix(name: str) -> str:
    """Return what a machine's name begins with: of `r12-n07.example.org` it is `r12`."""
    host = name.partition(".")[0]
    prefix = host.rpartition("-")[0] or host.rpartition("_")[0]
    return prefix or host.rstrip("0123456789")


Key = str | frozenset[str]


def _keys(
    machines: Iterable[Machine], by: Grouping, agents: Mapping[ProviderId, Agent]
) -> Steps[list[Key]]:
    """Return the group of each machine."""
    keys: list[Key] = []
    for machine in machines:
        if by == "aggregate":
            keys.append(machine.aggregates)
        elif by == "trait":
            keys.append(machine.traits)
        elif by == "name":
            keys.append(name_prefix(machine.root.name))
        else:
            agent = agents.get(machine.root.uuid)
            keys.append("" if agent is None else agent.group)
        if len(keys) % A_STEP == 0:
            yield
    return keys


NOBODY: Mapping[Grouping, str] = {
    "aggregate": "no aggregate",
    "trait": "no further trait",
    "agents": "no agent",
    "name": "no prefix",
}
"""The name of the group of machines without any, by grouping."""


def _label(key: Key, everywhere: frozenset[str], by: Grouping) -> str:
    if isinstance(key, str):
        return key or NOBODY[by]
    names = sorted(key - everywhere)
    more = f" + {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return " + ".join(names[:NAMES_SHOWN]) + more or NOBODY[by]


class Group(msgspec.Struct, array_like=True):
    """A group on the map; the sums are those of the chosen class, and 0 without one."""

    name: str
    machines: int
    total: int = 0
    capacity: int = 0
    used: int = 0

    def add(self, machine: Machine) -> None:
        """Add what a machine has of the chosen class."""
        self.total += machine.total
        self.capacity += machine.units
        self.used += machine.taken


class Columns(msgspec.Struct):
    """The input of the script: machines in the order of their groups, a byte each in a column.

    `order` changes whenever machines or their names do: then the names are to be read again.
    """

    as_of: str
    order: str
    left_out: int
    groups: list[Group]
    used: str
    offered: str
    reserved: str
    condition: str


class Names(msgspec.Struct):
    """The names of the machines in their order, and their UUIDs without dashes, joined."""

    order: str
    names: list[str]
    ids: str


def drawn(
    records: Snapshot,
    agents: Mapping[ProviderId, Agent],
    as_of: str,
    by: Grouping,
    resource_class: str | None,
) -> Steps[tuple[Columns, Names]]:
    """Return the map. Others have their turn in between; the records are of one moment."""
    machines, left_out = yield from machines_of(records, resource_class)
    groups = yield from _grouped(machines, by, agents)
    shown: list[Group] = []
    columns = used, offered, reserved, conditions = [bytearray() for _ in range(4)]
    names: list[str] = []
    ids: list[str] = []
    digest = hashlib.sha256()
    for label, members in groups:
        group = Group(label, len(members))
        shown.append(group)
        for machine in members:
            group.add(machine)
            agent = agents.get(machine.root.uuid)
            used.append(machine.used)
            offered.append(machine.offered)
            reserved.append(machine.reserved)
            conditions.append(condition(agent, machine.root))
            names.append(plain(machine.root.name))
            ids.append(machine.root.uuid.replace("-", ""))
            digest.update(f"{machine.root.uuid} {machine.root.name}\n".encode())
            if len(names) % A_STEP == 0:
                yield
    order = digest.hexdigest()[:16]
    encoded = [base64.b64encode(column).decode() for column in columns]
    return Columns(as_of, order, left_out, shown, *encoded), Names(order, names, "".join(ids))


def _grouped(
    machines: list[Machine], by: Grouping, agents: Mapping[ProviderId, Agent]
) -> Steps[list[tuple[str, list[Machine]]]]:
    """Return the groups in the order of their names, each with its machines by name."""
    keys = yield from _keys(machines, by, agents)
    members: dict[Key, list[Machine]] = {}
    everywhere: frozenset[str] | None = None
    for done, (key, machine) in enumerate(zip(keys, machines, strict=True)):
        found = members.get(key)
        if found is None:
            found = members[key] = []
            if isinstance(key, frozenset):
                everywhere = key if everywhere is None else everywhere & key
        found.append(machine)
        if done % A_STEP == 0:
            yield
    kept = sorted(members, key=lambda key: len(members[key]), reverse=True)[: GROUPS_MAX - 1]
    if len(members) > GROUPS_FEW:
        kept = [key for key in kept if len(members[key]) > 1]
    common = everywhere if everywhere is not None and len(members) > 1 else frozenset()
    groups = [(plain(_label(key, common, by)), members.pop(key)) for key in kept]
    groups.sort(key=lambda group: group[0])
    if members:
        groups.append((OTHERS, [*chain.from_iterable(members.values())]))
    yield
    result = []
    for label, one in groups:
        ordered = yield from _by_name(one)
        result.append((label, ordered))
    return result


def _by_name(machines: list[Machine]) -> Steps[list[Machine]]:
    parts = []
    for first in range(0, len(machines), A_STEP):
        parts.append(sorted(machines[first : first + A_STEP], key=_name))
        yield
    ordered: list[Machine] = []
    for machine in merge(*parts, key=_name):
        ordered.append(machine)
        if len(ordered) % A_STEP == 0:
            yield
    return ordered


def _name(machine: Machine) -> str:
    return machine.root.name


def encoded(value: Any) -> bytes:
    """Encode columns or names as JSON."""
    return msgspec.json.encode(value)
