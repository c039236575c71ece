"""Queries of groups of reporters, answered from their rows. All raise Damaged."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from moorage.core.fleet.reporters import DeletedGroup, Member, ReporterGroup
from moorage.core.ids import ProviderId
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.api import Done, Plan, Query, advanced
from moorage.store.encoding import encode
from moorage.store.fleet.rows import deleted_from_row, member_from_row, reporter_group_from_row

T = TypeVar("T")


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
