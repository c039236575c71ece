"""Maps the fleet's values to rows: a body with the whole value, and columns to search by."""

from collections.abc import Iterable

from msgspec import MsgspecError, json

from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.offers import is_offered
from moorage.core.ids import AgentId
from moorage.store.api import Damaged, Row
from moorage.store.encoding import encode

_agent = json.Decoder(Agent)
_group = json.Decoder(Group)


def agent_from_body(body: str) -> Agent:
    """Read an agent. Raises msgspec's MsgspecError."""
    return _agent.decode(body)


def agent_from_row(uuid: AgentId, body: str) -> Agent:
    """Read the row of an agent. Raises Damaged."""
    try:
        return _agent.decode(body)
    except MsgspecError as error:
        raise _damaged(f"agent {uuid}", error) from error


def agents_from_rows(rows: Iterable[Row]) -> list[Agent]:
    """Read rows of (uuid, body), in their order. Raises Damaged."""
    return [agent_from_row(*row) for row in rows]


def group_from_body(body: str) -> Group:
    """Read a group. Raises msgspec's MsgspecError."""
    return _group.decode(body)


def group_from_row(name: str, body: str) -> Group:
    """Read the row of a group. Raises Damaged."""
    try:
        return _group.decode(body)
    except MsgspecError as error:
        raise _damaged(f"group '{name}'", error) from error


def _damaged(title: str, error: MsgspecError) -> Damaged:
    return Damaged(
        f"the row of {title} is damaged: {error}; `moorage db check` lists all damaged rows"
    )


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
