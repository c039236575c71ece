"""The fleet's change rows: their kinds, how they are written, and how followers read them."""

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.reporters import Member, ReporterGroup
from moorage.core.ids import AgentId
from moorage.store.encoding import encode
from moorage.store.fleet.rows import agent_from_row, group_from_row

KINDS: dict[str, Any] = {
    "group": Group,
    "agent": Agent,
    "reporter_group": ReporterGroup,
    "reporter": Member,
    "pin": str,
}
"""The kinds in the order in which a batch writes them, and the types of their values."""

FOLLOWED_KINDS = ("group", "agent")
"""The kinds that processes follow. The owner of a node is always read from the rows."""


def change_rows(changes: Changes) -> Iterator[tuple[str, str, str | None]]:
    """Yield (kind, key, body) of every change, in a fixed order; None as body: it was deleted."""
    for name, group in sorted(changes.groups.items()):
        yield "group", name, None if group is None else encode(group)
    for uuid, agent in sorted(changes.agents.items()):
        yield "agent", uuid, encode(agent)
    for name, known in sorted(changes.reporter_groups.items()):
        yield "reporter_group", name, None if known is None else encode(known)
    for (group_name, name), member in sorted(changes.members.items()):
        yield "reporter", f"{group_name}/{name}", None if member is None else encode(member)
    for (group_name, node), pin in sorted(changes.pins.items()):
        yield "pin", f"{group_name}/{node}", None if pin is None else encode(pin)


def changes_read(rows: Iterable[tuple[str, str, str | None]]) -> Changes:
    """Decode (kind, key, body) of change rows of followed kinds.

    Raises Damaged.
    """
    changes = Changes()
    for kind, key, body in rows:
        if kind == "group":
            changes.groups[key] = None if body is None else group_from_row(key, body)
        elif kind == "agent" and body is not None:
            changes.agents[AgentId(key)] = agent_from_row(AgentId(key), body)
    return changes
