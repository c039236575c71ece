"""Queries answered from the fleet's rows. Those without `readable` in the name raise Damaged."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgspec import Struct

from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.reporters import DeletedGroup, Member, ReporterGroup
from moorage.core.ids import AgentId, ProviderId
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.api import Damaged, Done, Plan, Query, Row, advanced
from moorage.store.encoding import encode
from moorage.store.fleet.rows import (
    agent_from_row,
    agents_from_rows,
    deleted_from_row,
    group_from_row,
    member_from_row,
    reporter_group_from_row,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window(Generic[T]):
    """Some rows in the order of their keys."""

    values: list[T]
    damaged: list[Damaged]
    """One for each row that cannot be read."""
    last: str | None
    """The key of the last row, readable or not; None: there are no rows."""


@dataclass(frozen=True, slots=True)
class AgentFilter:
    """Which agents to list; None matches all. `label_value` None: any value of the label."""

    group: str | None = None
    policy: str | None = None
    state: str | None = None
    readiness: str | None = None
    liveness: str | None = None
    offered: bool | None = None
    label: str | None = None
    label_value: str | None = None
    ids: tuple[str, str] = ("", "g")
    """The least UUID, and a text above all of them."""


def agent_load(uuid: AgentId) -> Plan[Agent | None]:
    """Load an agent."""
    (rows,) = yield [Query("agent_load", (uuid,))]
    return agent_from_row(*rows[0]) if rows else None


def agents_list(wanted: AgentFilter, after: str, limit: int) -> Plan[list[Agent]]:
    """Load at most `limit` agents whose UUIDs follow `after`, in order."""
    parameters = (
        after,
        wanted.group,
        wanted.policy,
        wanted.state,
        wanted.readiness,
        wanted.liveness,
        None if wanted.offered is None else int(wanted.offered),
        wanted.label,
        wanted.label_value,
        *wanted.ids,
        limit,
    )
    (rows,) = yield [Query("agents_list", parameters)]
    return agents_from_rows(rows)


def readable_agents_window(after: str, limit: int) -> Plan[Window[Agent]]:
    """Load some agents of all, in the order of their UUIDs."""
    (rows,) = yield [Query("agents_window", (after, limit))]
    return _readable(rows, agent_from_row)


def group_load(name: str) -> Plan[Group | None]:
    """Load a group."""
    (rows,) = yield [Query("agent_group_load", (name,))]
    return group_from_row(*rows[0]) if rows else None


def groups_window(after: str, limit: int) -> Plan[list[Group]]:
    """Load some groups, in the order of their names."""
    (rows,) = yield [Query("agent_groups_window", (after, limit))]
    return [group_from_row(*row) for row in rows]


def readable_groups_window(after: str, limit: int) -> Plan[Window[Group]]:
    """Load some groups of all, in the order of their names."""
    (rows,) = yield [Query("agent_groups_window", (after, limit))]
    return _readable(rows, group_from_row)


@dataclass(slots=True)
class GroupCounts:
    """Members by group, and those in service by group and liveness."""

    members: dict[str, int]
    in_service: dict[tuple[str, str], int]


def groups_count() -> Plan[GroupCounts]:
    """Count the active agents of all groups."""
    members, in_service = yield [Query("agents_count"), Query("agent_groups_count")]
    return GroupCounts(
        dict(members),
        {(name, liveness): count for name, liveness, count in in_service},
    )


def _readable(rows: Sequence[Row], read: Callable[[Any, str], T]) -> Window[T]:
    values: list[T] = []
    damaged: list[Damaged] = []
    for key, body in rows:
        try:
            values.append(read(key, body))
        except Damaged as error:
            damaged.append(error)
    return Window(values, damaged, rows[-1][0] if rows else None)


class Shared(Struct, frozen=True):
    """A group of reporters with its members and some of its pins, at one moment."""

    timeline: Timeline
    group: ReporterGroup | None
    members: list[Member]
    pins: dict[ProviderId, str]


def shared_load(group: str, nodes: Iterable[ProviderId] = ()) -> Plan[Shared]:
    """Load a group with its members, and the pins of some nodes."""
    asked = encode([[group, node] for node in nodes])
    clock, groups, members, pins = yield [
        service_clock.LOAD,
        Query("reporter_group_load", (group,)),
        Query("reporters_load_by_group", (group,)),
        Query("pins_load", (asked,)),
    ]
    return Shared(
        service_clock.timeline_from_rows(clock),
        reporter_group_from_row(*groups[0]) if groups else None,
        [member_from_row(*row) for row in members],
        {node: member for _, node, member in pins},
    )


def known(group: str, plan: Plan[T]) -> Plan[T | None]:
    """Load something of a group by a plan that asks once; None: there is no such group."""
    asked = advanced(plan, None)
    assert not isinstance(asked, Done)
    groups, *rows = yield [Query("reporter_group_load", (group,)), *asked]
    found = advanced(plan, rows)
    assert isinstance(found, Done)
    return found.answer if groups else None


def deleted_load() -> Plan[tuple[Timeline, list[tuple[DeletedGroup, bool]]]]:
    """Load all deleted groups, and whether there is another group of the name again."""
    clock, rows = yield [service_clock.LOAD, Query("deleted_reporter_groups_snapshot")]
    found = [(deleted_from_row(*row), bool(again)) for *row, again in rows]
    return service_clock.timeline_from_rows(clock), found


def marked_window(group: str, after: str, limit: int) -> Plan[list[ProviderId]]:
    """Load some providers on which the reports of a group have set anything, by UUID."""
    (rows,) = yield [Query("marked_window", (group, after, limit))]
    return [uuid for (uuid,) in rows]


def pinned_window(group: str, after: str, limit: int) -> Plan[list[ProviderId]]:
    """Load some nodes of a group that are pinned, by UUID."""
    (rows,) = yield [Query("pins_window", (group, after, limit))]
    return [node for node, _ in rows]


def pins_window(group: str, after: str, limit: int) -> Plan[list[tuple[ProviderId, str]]]:
    """Load some pins of a group as (node, member), in the order of nodes."""
    (rows,) = yield [Query("pins_window", (group, after, limit))]
    return [(node, member) for node, member in rows]


def reporter_groups_window(after: str, limit: int) -> Plan[list[ReporterGroup]]:
    """Load some groups of reporters, in the order of their names."""
    (rows,) = yield [Query("reporter_groups_window", (after, limit))]
    return [reporter_group_from_row(*row) for row in rows]


def pins_count(group: str) -> Plan[dict[str, int]]:
    """Count the pins of a group by member."""
    (rows,) = yield [Query("pins_count", (group,))]
    return dict(rows)


def ghosts_window(group: str, after: str, limit: int) -> Plan[list[ProviderId]]:
    """Load some ghosts of a group, in the order of their UUIDs; see `Reported`."""
    (rows,) = yield [Query("ghosts_window", (group, after, limit))]
    return [uuid for (uuid,) in rows]


def reported_window(group: str, after: str, limit: int) -> Plan[list[tuple[ProviderId, bool]]]:
    """Load some providers that a group owns, or that are ghosts, as (provider, ghost), by UUID."""
    (rows,) = yield [Query("reported_window", (group, after, limit))]
    return [(uuid, bool(ghost)) for uuid, ghost in rows]
