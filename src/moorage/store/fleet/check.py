"""Checks the fleet's rows for consistency: compares columns with the bodies.

`store/check.py` compares the offers of agents with the ledger.
"""

from collections.abc import Iterator

from moorage.core.fleet.model import State
from moorage.store.api import Damaged, Plan, Query, Row
from moorage.store.differences import Found, Kind, collected
from moorage.store.fleet.rows import (
    agent_from_body,
    agent_row,
    deleted_from_row,
    group_from_body,
    group_row,
    member_from_body,
    member_row,
    reporter_group_from_body,
    reporter_group_row,
)

AGENT = Kind("agent {uuid}", "agent_upsert", agent_from_body, agent_row)
GROUP = Kind("group {name}", "agent_group_upsert", group_from_body, group_row)
REPORTER_GROUP = Kind(
    "group of reporters {name}",
    "reporter_group_upsert",
    reporter_group_from_body,
    reporter_group_row,
    lambda _stored, _value: ("seen_at",),
)
REPORTER = Kind(
    "reporter {reporter_group}/{name}",
    "reporter_upsert",
    member_from_body,
    member_row,
    lambda _stored, _value: ("heard_until", "last_pass"),
)


def differences_load() -> Plan[list[str]]:
    """Return the differences between stored and expected rows; empty if there are none.

    Use `read_aside`: it reads everything.
    """
    return (yield from collected("fleet", _compared))


def _compared(found: Found) -> Plan[None]:
    agents, groups, reporter_groups, deleted, reporters, pins = yield [
        Query("agents_snapshot"),
        Query("agent_groups_snapshot"),
        Query("reporter_groups_snapshot"),
        Query("deleted_reporter_groups_snapshot"),
        Query("reporters_snapshot"),
        Query("pins_adrift"),
    ]
    names = {row[0] for row in groups}
    for _ in found.read(GROUP, groups):
        pass
    for stored, agent in found.read(AGENT, agents):
        if agent.state is State.ACTIVE and agent.group not in names:
            found.tell([f"agent {stored['uuid']}: its group '{agent.group}' does not exist"])
    for _ in found.read(REPORTER_GROUP, reporter_groups):
        pass
    found.tell(_damaged(deleted))
    sharing = {row[0] for row in reporter_groups}
    for stored, _ in found.read(REPORTER, reporters):
        if stored["reporter_group"] not in sharing:
            found.tell([f"reporter {stored['name']}: its group does not exist"])
    found.tell(f"pin of node {node}: group '{group}' does not exist" for group, node in pins)


def _damaged(rows: list[Row]) -> Iterator[str]:
    """Yield which deleted groups of reporters cannot be read."""
    for *row, _ in rows:
        try:
            deleted_from_row(*row)
        except Damaged:
            yield f"deleted group of reporters {row[0]}: its instances cannot be read"
