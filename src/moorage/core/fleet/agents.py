"""Functions that all rules of agents share: finding one, its registered pairs, its changes."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, ManagedClass, Part, State
from moorage.core.ids import AgentId, ProviderId
from moorage.core.limits import IDENTIFIER_LENGTH_MAX
from moorage.core.texts import is_name


class Pair(NamedTuple):
    """A resource class of a provider."""

    provider: ProviderId
    resource_class: str


def find(facts: Facts, uuid: AgentId) -> Agent:
    """Return an agent. Raises AGENT_NOT_FOUND."""
    agent = facts.agents.get(uuid)
    if agent is None:
        raise Error(
            Code.AGENT_NOT_FOUND,
            f"There is no agent {uuid}. An operator must create it first, or it must enroll.",
        )
    return agent


def find_active(facts: Facts, uuid: AgentId) -> Agent:
    """Return an agent that is not decommissioned. Raises AGENT_NOT_FOUND, DECOMMISSIONED."""
    agent = find(facts, uuid)
    check_active(agent)
    return agent


def check_active(agent: Agent) -> None:
    """Raise DECOMMISSIONED for an agent that must stop permanently."""
    if agent.state is State.DECOMMISSIONED:
        raise Error(
            Code.DECOMMISSIONED,
            f"Agent {agent.uuid} is decommissioned permanently: stop it. To use the machine again, "
            "create an agent with another UUID.",
        )


def check_class_name(name: str) -> None:
    """Raise INVALID if no resource class may have this name."""
    if not is_name(name):
        raise Error(
            Code.INVALID,
            f"The name of a resource class has 1 to {IDENTIFIER_LENGTH_MAX} characters of A-Z, "
            f"0-9 and '_', not '{name[:IDENTIFIER_LENGTH_MAX]}'.",
        )


def registered(agent: Agent) -> Iterator[tuple[Pair, ManagedClass]]:
    """Yield the classes that the last register lists."""
    for uuid, part in agent.parts.items():
        for name in registered_at(part):
            yield Pair(uuid, name), part.classes[name]


def registered_at(part: Part) -> list[str]:
    """Return the classes of one part that the last register lists."""
    return [name for name, one in part.classes.items() if one.present] if part.present else []


def changes_of(before: Agent, after: Agent, now: Instant) -> Changes:
    """Return the changes that make an agent what it is after a decision; equal: none."""
    if after == before:
        return Changes()
    after = replace(after, generation=before.generation + 1, updated_at=now)
    return Changes(agents={after.uuid: after})
