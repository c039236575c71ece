"""Queries answered from the fleet's rows. Those without `readable` in the name raise Damaged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.core.fleet.model import Agent, Group
from moorage.core.ids import AgentId
from moorage.store.api import Damaged, Plan, Query, Row
from moorage.store.fleet.rows import agent_from_row, agents_from_rows, group_from_row

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
