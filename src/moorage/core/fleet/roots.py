"""Which provider may be the root of an agent's machine.

The root of a machine decides what an agent may close: the whole tree below it. So a provider that
the server has not created for the agent must have the agent's UUID, with which an operator has
created or accepted the agent, or must have been given to it by an operator. It never is, or
contains, or is within what another agent manages. Source: decision 0041.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import changes_of, find_active
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, Policy, State
from moorage.core.ids import AgentId, ProviderId, is_normal

Around = Mapping[ProviderId, AgentId | None]
"""Providers, and the agents that manage them."""


def give(facts: Facts, now: Instant, uuid: AgentId, root: ProviderId) -> Changes:
    """Let an agent have an existing provider as root, for an operator. A repeat changes nothing.

    Args:
        facts: with the agent, the agent of the root, and the agent with the UUID of the root.
        now: the time of the decision.
        uuid: the agent.
        root: the provider; it need not exist yet.

    Raises AGENT_NOT_FOUND, DECOMMISSIONED, INVALID, ROOT_TAKEN.
    """
    before = find_active(facts, uuid)
    return changes_of(before, given(facts, before, root), now)


def given(facts: Facts, agent: Agent, root: ProviderId | None) -> Agent:
    """Return an agent to which a root is given; None: as before. Raises INVALID, ROOT_TAKEN."""
    if root is None or root == agent.given_root:
        return agent
    _check_normal(root)
    if agent.root not in (None, root):
        raise _fixed(agent)
    _check_free(facts, agent, root, {root: None})
    return replace(agent, given_root=root)


def rooted(facts: Facts, agent: Agent, named: ProviderId | None, around: Around) -> Agent:
    """Return an agent with the root of its machine, which never changes.

    Args:
        facts: with the agents of what is around the root.
        agent: as it was.
        named: the root that it registers with; None: the server creates one.
        around: the root, and all providers above and below it, if it exists.

    Raises INVALID, ROOT_TAKEN, NOT_ACCEPTED, POLICY_FINAL.
    """
    owns_root = named is None
    root = ProviderId(agent.uuid) if named is None else named
    if (agent.root, agent.owns_root) == (root, owns_root):
        return agent
    # The server may not have created the root of an agent, because it exists already.
    is_of_others = agent.owns_root and agent.root == root and around.get(root) != agent.uuid
    if agent.root is not None and not (is_of_others and root in around):
        raise _fixed(agent)
    _check_normal(root)
    if named is None and agent.given_root is not None:
        raise Error(
            Code.INVALID,
            f"An operator has given provider {agent.given_root} to agent {agent.uuid} as root: "
            f"register with root {agent.given_root}.",
        )
    _check_free(facts, agent, root, {root: None, **around})
    if not owns_root:
        _check_may_take(agent, root)
    return replace(agent, root=root, owns_root=owns_root)


def _check_may_take(agent: Agent, root: ProviderId) -> None:
    """Raise unless an agent may have a provider of others as root: it could close it."""
    if agent.policy is Policy.EXPUNGED:
        raise Error(
            Code.POLICY_FINAL,
            f"Agent {agent.uuid} is expunged permanently, so provider {root} cannot become"
            " its root.",
        )
    if root not in (agent.uuid, agent.given_root):
        raise Error(
            Code.NOT_ACCEPTED,
            f"An operator must give provider {root} to agent {agent.uuid} before it becomes its "
            f"root: moorage agent root {agent.uuid} {root}",
        )
    if not agent.accepted:
        raise Error(
            Code.NOT_ACCEPTED,
            f"Agent {agent.uuid} has enrolled: an operator must accept it (moorage agent resume) "
            f"before provider {root} becomes its root.",
        )


def _check_free(facts: Facts, agent: Agent, root: ProviderId, around: Around) -> None:
    """Raise ROOT_TAKEN if another agent has a root, or manages anything above or below it."""
    named = facts.agents.get(AgentId(root))
    if named is not None and named.uuid != agent.uuid and named.state is State.ACTIVE:
        raise _taken(root, f"has the UUID of agent {named.uuid}", named.uuid)
    for uuid, manager in around.items():
        place = "is" if uuid == root else f"is in one tree with provider {uuid},"
        other = facts.roots.get(uuid)
        if other not in (None, agent.uuid):
            raise _taken(root, f"{place} the root of agent {other}", other)
        if manager not in (None, agent.uuid):
            holder = facts.agents.get(AgentId(manager))
            if holder is not None and holder.state is State.ACTIVE:
                raise _taken(root, f"{place} a part of agent {manager}", manager)


def _taken(root: ProviderId, why: str, other: str) -> Error:
    return Error(
        Code.ROOT_TAKEN,
        f"Provider {root} {why}: a machine has one agent. Register another root, or decommission "
        f"agent {other}.",
    )


def _fixed(agent: Agent) -> Error:
    way = "without a root" if agent.owns_root else f"with root {agent.root}"
    return Error(
        Code.INVALID,
        f"The root of agent {agent.uuid} cannot change: register {way}, as before, or decommission "
        "the agent and create one with another UUID.",
    )


def _check_normal(root: ProviderId) -> None:
    if not is_normal(root):
        raise Error(Code.INVALID, f"root must be a UUID in lower case with dashes, not '{root}'.")
