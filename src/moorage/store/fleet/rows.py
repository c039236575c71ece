"""Maps the fleet's values to rows: a body with the whole value, and columns to search by."""

from collections.abc import Iterable

from msgspec import MsgspecError, json
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.offers import is_offered
from moorage.core.fleet.reporters import DeletedGroup, Member, Pass, ReporterGroup
from moorage.core.ids import AgentId
from moorage.store.api import Damaged, Row
from moorage.store.encoding import encode

_agent = json.Decoder(Agent)
_group = json.Decoder(Group)
_instances = json.Decoder(tuple[str, ...])
_member = json.Decoder(Member)
_pass = json.Decoder(Pass)
_reporter_group = json.Decoder(ReporterGroup)


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


def member_from_body(body: str) -> Member:
    """Read a member of a group of reporters. Raises msgspec's MsgspecError."""
    return _member.decode(body)


def member_from_row(
    group: str, name: str, heard_until: Instant, last_pass: str | None, body: str
) -> Member:
    """Read the row of a member of a group of reporters. Raises Damaged."""
    try:
        last = None if last_pass is None else _pass.decode(last_pass)
        return replace(_member.decode(body), heard_until=heard_until, last_pass=last)
    except MsgspecError as error:
        raise _damaged(f"reporter '{name}' of group '{group}'", error) from error


def member_row(member: Member) -> Row:
    """Write a member of a group of reporters."""
    last = None if member.last_pass is None else encode(member.last_pass)
    return (member.group, member.name, member.heard_until, last, encode(member))


def reporter_group_from_body(body: str) -> ReporterGroup:
    """Read a group of reporters. Raises msgspec's MsgspecError."""
    return _reporter_group.decode(body)


def reporter_group_from_row(name: str, seen_at: Instant | None, body: str) -> ReporterGroup:
    """Read the row of a group of reporters. Raises Damaged."""
    try:
        return replace(_reporter_group.decode(body), seen_at=seen_at)
    except MsgspecError as error:
        raise _damaged(f"group of reporters '{name}'", error) from error


def reporter_group_row(group: ReporterGroup) -> Row:
    """Write a group of reporters."""
    return (group.name, group.seen_at, encode(group))


def deleted_from_row(
    name: str, deleted_at: Instant, tokens: int, pins_generation: int, instances: str, cleared: int
) -> DeletedGroup:
    """Read the row of a deleted group of reporters. Raises Damaged."""
    try:
        known = _instances.decode(instances)
    except MsgspecError as error:
        raise _damaged(f"deleted group of reporters '{name}'", error) from error
    return DeletedGroup(name, deleted_at, tokens, pins_generation, known, bool(cleared))


def deleted_row(group: DeletedGroup) -> Row:
    """Write a deleted group of reporters."""
    return (
        group.name,
        group.deleted_at,
        group.tokens,
        group.pins_generation,
        encode(group.instances),
        int(group.cleared),
    )
