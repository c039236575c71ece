"""Groups of agents: their defaults, and when they may be deleted."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import changes_of, check_class_name
from moorage.core.fleet.desired import check_goal, following
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, Goal, Group, Silence, State
from moorage.core.ids import AgentId
from moorage.core.limits import GROUP_CLASSES_MAX, GROUP_NAME_LENGTH_MAX
from moorage.core.texts import check_path

NO_DEFAULTS: Mapping[str, Goal] = MappingProxyType({})
"""The defaults of a group for which no operator has set any."""


def put(
    facts: Facts,
    now: Instant,
    name: str,
    desired: Mapping[str, Goal],
    members: Iterable[AgentId] = (),
    silence: Silence | None = None,
) -> Changes:
    """Create a group or replace its defaults and its silence, and make its members follow them.

    Equal defaults change nothing.

    Args:
        facts: with the group, if it exists, and the members.
        now: wall-clock time.
        name: path-like, of a-z, 0-9, `.`, `_`, `-`.
        desired: the default of each class: an amount for each part, or a share of what is eligible.
        members: agents to change in the same decision; for others call `follow` later.
        silence: what is closed while one of them is silent; None: unchanged, of a new group `own`.

    Raises INVALID.
    """
    _check_desired(desired)
    before = facts.groups.get(name)
    changes = ensured(facts, now, name, desired, silence or Silence.OWN)
    after = changes.groups.get(name)
    if before is not None:
        after = replace(before, desired=dict(desired), silence=silence or before.silence)
        if after != before:
            after = replace(after, generation=before.generation + 1, updated_at=now)
            changes.groups[name] = after
    assert after is not None
    for uuid in members:
        changes.update(_followed(facts.agents[uuid], after, now))
    return changes


def follow(facts: Facts, now: Instant, uuid: AgentId) -> Changes:
    """Make a member follow the present defaults of its group; nothing changes if it does."""
    agent = facts.agents[uuid]
    return _followed(agent, facts.groups.get(agent.group), now)


def follows(agent: Agent, group: Group) -> bool:
    """Has an agent the amounts that follow from the defaults of its group?"""
    return not _followed(agent, group, agent.updated_at)


def delete(facts: Facts, name: str, members: int) -> Changes:
    """Remove a group.

    Args:
        facts: with the group.
        name: its name.
        members: the number of its active agents; decommissioned ones do not count.

    Raises GROUP_NOT_FOUND, GROUP_IN_USE.
    """
    if name not in facts.groups:
        raise Error(Code.GROUP_NOT_FOUND, f"There is no group '{name}'.")
    if members:
        raise Error(
            Code.GROUP_IN_USE,
            f"Group '{name}' still has {counted(members, 'agent')}: move them to another group, "
            "or decommission them.",
        )
    return Changes(groups={name: None})


def ensured(
    facts: Facts,
    now: Instant,
    name: str,
    desired: Mapping[str, Goal] = NO_DEFAULTS,
    silence: Silence = Silence.OWN,
) -> Changes:
    """Create a group with these defaults if there is none of this name. Raises INVALID."""
    if name in facts.groups:
        return Changes()
    check_path("A group's name", name, GROUP_NAME_LENGTH_MAX)
    return Changes(
        groups={name: Group(name, now, now, dict(desired), generation=1, silence=silence)}
    )


def _followed(agent: Agent, group: Group | None, now: Instant) -> Changes:
    if agent.state is State.DECOMMISSIONED:
        return Changes()
    return changes_of(agent, following(agent, agent, group), now)


def _check_desired(desired: Mapping[str, Goal]) -> None:
    if len(desired) > GROUP_CLASSES_MAX:
        raise Error(Code.INVALID, f"A group has defaults of at most {GROUP_CLASSES_MAX} classes.")
    for name, goal in desired.items():
        check_class_name(name)
        check_goal(name, goal)
