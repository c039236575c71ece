"""Operators' policies for a machine: drain, resume, expunge and decommission.

`TRANSITIONS` is the whole table. A request for the present policy changes nothing.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import changes_of, check_active, find
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, Policy, State
from moorage.core.ids import AgentId
from moorage.core.texts import check_reason


class Action(StrEnum):
    """The actions of an operator."""

    DRAIN = "drain"
    RESUME = "resume"
    EXPUNGE = "expunge"
    DECOMMISSION = "decommission"


IN_SERVICE = (State.ACTIVE, Policy.IN_SERVICE)
DRAINED = (State.ACTIVE, Policy.NO_PROVISION)
EXPUNGED = (State.ACTIVE, Policy.EXPUNGED)

Outcome = tuple[State, Policy] | Code
"""The state and policy afterwards, or why it is refused."""

TRANSITIONS: Final[Mapping[tuple[State, Policy], Mapping[Action, Outcome]]] = {
    IN_SERVICE: {
        Action.DRAIN: DRAINED,
        Action.RESUME: IN_SERVICE,
        Action.EXPUNGE: EXPUNGED,
        Action.DECOMMISSION: Code.NOT_EXPUNGED,
    },
    DRAINED: {
        Action.DRAIN: DRAINED,
        Action.RESUME: IN_SERVICE,
        Action.EXPUNGE: EXPUNGED,
        Action.DECOMMISSION: Code.NOT_EXPUNGED,
    },
    EXPUNGED: {
        Action.DRAIN: Code.POLICY_FINAL,
        Action.RESUME: Code.POLICY_FINAL,
        Action.EXPUNGE: EXPUNGED,
        Action.DECOMMISSION: (State.DECOMMISSIONED, Policy.EXPUNGED),
    },
    **{
        (State.DECOMMISSIONED, policy): {
            Action.DRAIN: Code.DECOMMISSIONED,
            Action.RESUME: Code.DECOMMISSIONED,
            Action.EXPUNGE: Code.DECOMMISSIONED,
            Action.DECOMMISSION: (State.DECOMMISSIONED, policy),
        }
        for policy in Policy
    },
}
"""The result of each action, by the state and policy before it."""

_TOWARDS = {
    Policy.IN_SERVICE: Action.RESUME,
    Policy.NO_PROVISION: Action.DRAIN,
    Policy.EXPUNGED: Action.EXPUNGE,
}

NOT_ACCEPTED = "enrolled, not accepted"
"""Why nothing is placed on a machine that has enrolled itself."""

SERVER = "moorage"
"""The author of the end of a timed drain."""


def drain(
    facts: Facts,
    now: Instant,
    uuid: AgentId,
    reason: str,
    who: str,
    until: Instant | None = None,
    wall: Instant | None = None,
) -> Changes:
    """Place nothing new on a machine. A repeat changes nothing but `until`.

    Args:
        facts: with the agent.
        now: the time of the decision.
        uuid: the agent.
        reason: for people.
        who: the operator.
        until: when it ends by itself, by the wall clock; None: never.
        wall: the wall clock, if it may have been set back since other decisions; None: `now`.

    Raises AGENT_NOT_FOUND, DECOMMISSIONED, POLICY_FINAL, INVALID.
    """
    if until is not None and until <= (now if wall is None else wall):
        raise Error(Code.INVALID, "until must be in the future, or omitted.")
    return _changed(facts, now, uuid, Action.DRAIN, reason, who, until)


def resume(facts: Facts, now: Instant, uuid: AgentId, reason: str, who: str) -> Changes:
    """Use a drained machine again. Raises as `drain`."""
    return _changed(facts, now, uuid, Action.RESUME, reason, who)


def expunge(facts: Facts, now: Instant, uuid: AgentId, reason: str, who: str) -> Changes:
    """Never use a machine again. Raises AGENT_NOT_FOUND, DECOMMISSIONED, INVALID."""
    return _changed(facts, now, uuid, Action.EXPUNGE, reason, who)


def decommission(
    facts: Facts,
    now: Instant,
    uuid: AgentId,
    reason: str,
    who: str,
    *,
    used: bool,
    force: bool = False,
) -> Changes:
    """End an agent permanently; nothing of its machine is deleted.

    Args:
        facts: with the agent.
        now: wall-clock time.
        uuid: the agent.
        reason: for people.
        who: the operator.
        used: whether there are allocations on the machine.
        force: do it although there are.

    Raises AGENT_NOT_FOUND, NOT_EXPUNGED, HAS_ALLOCATIONS, INVALID.
    """
    changes = _changed(facts, now, uuid, Action.DECOMMISSION, reason, who)
    if changes and used and not force:
        raise Error(
            Code.HAS_ALLOCATIONS,
            f"There are still allocations on the machine of agent {uuid}: move or delete them, or "
            "set force if they no longer mean anything.",
        )
    return changes


def drain_over(agent: Agent, now: Instant) -> Changes:
    """Resume a machine whose drain has reached its end; no changes: it has not."""
    until = agent.policy_until
    if agent.policy is not Policy.NO_PROVISION or until is None or until > now:
        return Changes()
    if not agent.accepted:  # only an operator ends this
        after = replace(agent, policy_reason=NOT_ACCEPTED, policy_by=SERVER, policy_until=None)
        return changes_of(agent, after, now)
    return changes_of(agent, moved(agent, Action.RESUME, "the drain has ended", SERVER), now)


def wanted(agent: Agent, policy: Policy, who: str) -> Agent:
    """Return an agent with the policy of a request that gives no reason; an equal one stays.

    Raises DECOMMISSIONED, POLICY_FINAL.
    """
    return agent if agent.policy is policy else moved(agent, _TOWARDS[policy], "", who)


def moved(
    agent: Agent, action: Action, reason: str, who: str, until: Instant | None = None
) -> Agent:
    """Return an agent after an action; unchanged if it is so already.

    If the policy stays and no reason is given, the reason and who gave it stay, too.

    Raises DECOMMISSIONED, POLICY_FINAL, NOT_EXPUNGED.
    """
    outcome = TRANSITIONS[agent.state, agent.policy][action]
    if isinstance(outcome, Code):
        check_active(agent)
        raise _refused(agent, outcome)
    if outcome == (agent.state, agent.policy) and until == agent.policy_until:
        return agent
    explained = bool(reason) or outcome[1] is not agent.policy
    return replace(
        agent,
        state=outcome[0],
        policy=outcome[1],
        policy_reason=reason if explained else agent.policy_reason,
        policy_by=who if explained else agent.policy_by,
        policy_until=until,
        accepted=agent.accepted or outcome == IN_SERVICE,
    )


def _changed(
    facts: Facts,
    now: Instant,
    uuid: AgentId,
    action: Action,
    reason: str,
    who: str,
    until: Instant | None = None,
) -> Changes:
    agent = find(facts, uuid)
    check_reason(reason)
    return changes_of(agent, moved(agent, action, reason, who, until), now)


def _refused(agent: Agent, code: Code) -> Error:
    if code is Code.NOT_EXPUNGED:
        return Error(
            code, f"Agent {agent.uuid} is {agent.policy}: expunge it before you decommission it."
        )
    return Error(
        code,
        f"Agent {agent.uuid} is expunged permanently: it can only be decommissioned. To use the "
        "machine again, decommission it and create an agent with another UUID.",
    )
