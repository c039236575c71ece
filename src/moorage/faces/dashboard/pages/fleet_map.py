"""The fleet as columns for the canvas: a byte per machine and figure, as of one revision.

A machine is the root of a tree of providers; its figures are those of its whole tree. It stands in
one group: machines in several aggregates, or with several traits, with those that have the same.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from heapq import merge
from itertools import chain
from typing import Any, Literal, get_args

import msgspec

from moorage.core.fleet.model import Agent
from moorage.core.ids import ProviderId
from moorage.core.ledger.search.capacity_sums import Snapshot
from moorage.core.ledger.search.steps import Steps
from moorage.core.texts import plain
from moorage.faces.dashboard.pages.fleet_machines import A_STEP, Machine, condition, machines_of

Grouping = Literal["aggregate", "trait", "agents", "name"]
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
    """What the script draws: machines in the order of their groups, a byte each in a column.

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
