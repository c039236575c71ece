"""Maps the fleet's values to rows: a body with the whole value, and columns to search by."""

from collections.abc import Iterable

from msgspec import json

from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.offers import is_offered
from moorage.store.api import Row
from moorage.store.encoding import encode

_agent = json.Decoder(Agent)
_group = json.Decoder(Group)


def agent_from_body(body: str) -> Agent:
    """Read an agent."""
    return _agent.decode(body)


def agents_from_rows(rows: Iterable[Row]) -> list[Agent]:
    """Read rows of one body each, in their order."""
    return [_agent.decode(row[0]) for row in rows]


def group_from_body(body: str) -> Group:
    """Read a group."""
    return _group.decode(body)


def agent_row(agent: Agent) -> Row:
    """Write an agent."""
    return (
        agent.uuid,
        agent.number,
        agent.group,
        agent.root,
        agent.policy.value,
        agent.state.value,
        agent.readiness.value,
        agent.liveness.value,
        int(is_offered(agent)),
        encode(agent),
    )


def group_row(group: Group) -> Row:
    """Write a group."""
    return (group.name, encode(group))
