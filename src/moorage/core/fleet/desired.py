"""Desired amounts of machines: goals of agents, defaults of groups, and both as amounts.

The goal of a pair counts before the default of the group; without either, 0 is desired. An amount
that a client of the Placement API writes is a goal, too. It may exceed what is eligible, because
the original accepts it; nothing more is offered for it.
"""

from collections.abc import Mapping
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import Pair, changes_of, find, find_active, registered
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import (
    Agent,
    Amounts,
    Goal,
    Group,
    ManagedClass,
    Silence,
    Source,
    State,
)
from moorage.core.ids import AgentId, ProviderId
from moorage.core.limits import MAX_INT


class DesiredSpec(Struct, frozen=True):
    """An operator's goal for a class; None: the default of the group applies again.

    `provider` None: every registered part that has the class; an amount is then meant for each.
    """

    resource_class: str
    provider: ProviderId | None = None
    goal: Goal | None = None


def set_goal(facts: Facts, now: Instant, uuid: AgentId, spec: DesiredSpec) -> Changes:
    """Change the goal of a class; an equal goal changes nothing.

    Raises AGENT_NOT_FOUND, DECOMMISSIONED, INVALID.
    """
    agent = find_active(facts, uuid)
    if spec.goal is not None:
        check_goal(spec.resource_class, spec.goal)
    wanted = [
        pair
        for pair, _ in registered(agent)
        if pair.resource_class == spec.resource_class and spec.provider in (None, pair.provider)
    ]
    if not wanted:
        where = "No part of the machine" if spec.provider is None else f"Provider {spec.provider}"
        raise Error(
            Code.INVALID,
            f"{where} has class '{spec.resource_class}' in the last registration of agent {uuid}:"
            f" name a class that it lists, or set a default of the agent's group.",
        )
    for pair in wanted:
        _check_eligible(agent.parts[pair.provider].classes[pair.resource_class], pair, spec.goal)
    goals = dict.fromkeys(wanted, spec.goal)
    return _with_goals(facts, now, agent, goals, Source.AGENT)


def overwritten(
    facts: Facts, now: Instant, uuid: AgentId, totals: Mapping[tuple[ProviderId, str], int]
) -> Changes:
    """Take over totals that a client of the Placement API wrote.

    Classes that the agent does not manage are ignored. A decommissioned agent has nothing to follow
    them, so they change nothing.

    Args:
        facts: with the agent and its group.
        now: wall-clock time.
        uuid: the agent that manages the providers.
        totals: by provider and class; 0: the inventory was deleted.

    Raises AGENT_NOT_FOUND.
    """
    agent = find(facts, uuid)
    if agent.state is State.DECOMMISSIONED:
        return Changes()
    goals = {
        Pair(provider, name): Goal(amount=total)
        for (provider, name), total in totals.items()
        if provider in agent.parts and name in agent.parts[provider].classes
    }
    return _with_goals(facts, now, agent, goals, Source.PLACEMENT)


def amounts(agent: Agent) -> Amounts:
    """Return what the agent must prepare: the desired amount of every registered class.

    A class for which nobody has set a goal is omitted: what is there stays.
    """
    found: Amounts = {uuid: {} for uuid, part in agent.parts.items() if part.present}
    for pair, managed in registered(agent):
        if managed.source is not Source.NONE:
            found[pair.provider][pair.resource_class] = managed.desired
    return found


def defaults_of(facts: Facts, group: str) -> Mapping[str, Goal]:
    """Return the defaults of a group by resource class; none if the group does not exist."""
    found = facts.groups.get(group)
    return {} if found is None else found.desired


def resolved(before: Agent, after: Agent, defaults: Mapping[str, Goal]) -> Agent:
    """Return an agent with the amounts of its goals and of its group's defaults.

    The desired generation rises by one if any amount differs from that of `before`.

    Args:
        before: the agent before the decision.
        after: the agent with new parts or goals.
        defaults: of its group.
    """
    parts = {
        uuid: replace(
            part, classes={name: _resolved(m, name, defaults) for name, m in part.classes.items()}
        )
        for uuid, part in after.parts.items()
    }
    after = replace(after, parts=parts)
    rises = _figures(after) != _figures(before)
    return replace(after, desired_generation=before.desired_generation + rises)


def following(before: Agent, after: Agent, group: Group | None) -> Agent:
    """Return an agent as its group has it: its amounts, and what its silence closes.

    Args:
        before: the agent before the decision.
        after: the agent with new parts or goals.
        group: of the agent; None: it does not exist.
    """
    if group is None:
        return resolved(before, replace(after, silence=Silence.OWN), {})
    return resolved(before, replace(after, silence=group.silence), group.desired)


def amount_of(goal: Goal, eligible: int, step_size: int) -> int:
    """Return a goal as an amount; a share is rounded down to the step size."""
    if goal.percent is None:
        return goal.amount or 0
    # Exactly the decimal number that was given: 57.3 % of 1000 is 573, not 572.
    return int(Fraction(repr(goal.percent)) * eligible / 100) // step_size * step_size


def check_goal(name: str, goal: Goal) -> None:
    """Raise INVALID unless a goal is exactly one of a valid amount and a valid percentage."""
    if (goal.amount is None) == (goal.percent is None):
        raise Error(Code.INVALID, f"'{name}' needs either an amount or a percentage, not both.")
    if goal.amount is not None and not 0 <= goal.amount <= MAX_INT:
        raise Error(Code.INVALID, f"The amount of '{name}' must be from 0 to {MAX_INT}.")
    if goal.percent is not None and not 0 < goal.percent <= 100:
        raise Error(Code.INVALID, f"The percentage of '{name}' must be above 0 and at most 100.")


def _with_goals(
    facts: Facts, now: Instant, agent: Agent, goals: Mapping[Pair, Goal | None], source: Source
) -> Changes:
    parts = dict(agent.parts)
    for pair, goal in goals.items():
        part = parts[pair.provider]
        managed = part.classes[pair.resource_class]
        chosen = replace(managed, goal=goal, source=source)
        parts[pair.provider] = replace(part, classes={**part.classes, pair.resource_class: chosen})
    after = resolved(agent, replace(agent, parts=parts), defaults_of(facts, agent.group))
    return changes_of(agent, after, now)


def _resolved(managed: ManagedClass, name: str, defaults: Mapping[str, Goal]) -> ManagedClass:
    goal, source = managed.goal, managed.source
    if goal is None:
        goal = defaults.get(name)
        source = Source.NONE if goal is None else Source.GROUP
    desired = 0 if goal is None else amount_of(goal, managed.eligible, managed.step_size)
    return replace(managed, source=source, desired=desired)


def _figures(agent: Agent) -> dict[Pair, int]:
    return {
        Pair(uuid, name): managed.desired
        for uuid, part in agent.parts.items()
        for name, managed in part.classes.items()
        if managed.desired
    }


def _check_eligible(managed: ManagedClass, pair: Pair, goal: Goal | None) -> None:
    if goal is not None and (goal.amount or 0) > managed.eligible:
        raise Error(
            Code.INVALID,
            f"Provider {pair.provider} can have at most {managed.eligible} of "
            f"'{pair.resource_class}': set a lower amount.",
        )
