"""The offer of an agent: the one rule of policy, state, readiness and liveness.

Source: decision 0025; the table in docs/reference/agents.md.
"""

from moorage.core.fleet.model import (
    Agent,
    Liveness,
    ManagedClass,
    Part,
    Policy,
    Readiness,
    Silence,
    State,
)

OFFERING = frozenset({Readiness.READY, Readiness.DEGRADED})
"""The readiness of a machine on which something may be placed."""

NOT_REGISTERED = "not_registered"
"""The reason why nothing is offered of a part or class that the agent no longer registers."""


def closed_by_operators(agent: Agent) -> str | None:
    """Return why the whole tree of the machine is closed for new allocations; None: it is not."""
    if agent.state is State.DECOMMISSIONED:
        return agent.state.value
    if agent.policy is not Policy.IN_SERVICE:
        return agent.policy.value
    return None


def silent_or_unready(agent: Agent) -> str | None:
    """Return why the machine itself can give nothing now; None: it can."""
    if agent.readiness not in OFFERING:
        return agent.readiness.value
    if agent.liveness is not Liveness.FRESH:
        return agent.liveness.value
    return None


def why_withheld(agent: Agent) -> str | None:
    """Return the reason why the whole tree is withheld; None: it is open.

    A root that others created, such as Nova, has inventories that the agent does not speak for:
    these stay open when the agent is not ready, and when it is silent unless its group has
    `silence: all`.
    """
    reason = closed_by_operators(agent)
    if reason is not None:
        return reason
    if agent.owns_root:
        return silent_or_unready(agent)
    silent = agent.liveness is not Liveness.FRESH
    return agent.liveness.value if silent and agent.silence is Silence.ALL else None


def why_nothing(agent: Agent) -> str | None:
    """Return the reason why nothing of the agent's own classes is offered; None: they are."""
    return closed_by_operators(agent) or silent_or_unready(agent)


def is_offered(agent: Agent) -> bool:
    """Return whether anything may be placed on the agent's own classes now."""
    return why_nothing(agent) is None


def offered(agent: Agent, part: Part, managed: ManagedClass) -> int:
    """Return how much of a class a part of the machine offers now."""
    if not _registered(part, managed) or not is_offered(agent):
        return 0
    return min(managed.desired, managed.actual)


def why_less(agent: Agent, part: Part, managed: ManagedClass) -> str | None:
    """Return why less than the desired amount is offered; None: all of it is."""
    if offered(agent, part, managed) >= managed.desired:
        return None
    if (reason := why_nothing(agent)) is not None:
        return reason
    if not _registered(part, managed):
        return NOT_REGISTERED
    return agent.failure.code if agent.failure is not None else "not_there"


def _registered(part: Part, managed: ManagedClass) -> bool:
    return part.present and managed.present
