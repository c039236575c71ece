"""Queries of groups of reporters, answered from their rows. All raise Damaged."""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.fleet.reporters import Member, ReporterGroup
from moorage.core.ids import ProviderId
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.api import Plan, Query
from moorage.store.encoding import encode
from moorage.store.fleet.rows import member_from_row, reporter_group_from_row


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
