"""The plans of agents: each counts once for each agent, boot and content.

An agent sends the plan of its machine with a report, after each boot and whenever it is restarted.
What became of it is kept with the agent, so no restart and no other process does it twice.
"""

from collections.abc import Mapping
from uuid import UUID, uuid5

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import changes_of
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, AgentPlan, PlanOutcome
from moorage.core.ids import AgentId, ProviderId


def reshape_id_for(agent: AgentId, boot_id: str, digest: str) -> str:
    """Return the id of the reshape by a plan in a boot: the same at every process."""
    return str(uuid5(UUID(agent), f"{boot_id} {digest}"))


def reshapes_of(agent: Agent | None, uuid: AgentId, boot_id: str, digest: str) -> set[str]:
    """Return the ids of the reshapes that must be known to settle a plan."""
    known = None if agent is None or agent.plan is None else agent.plan.reshape
    own = reshape_id_for(uuid, boot_id, digest)
    return {own} if known is None else {own, known}


def settled(
    agent: Agent, digest: str, undone: Mapping[str, bool], now: Instant
) -> AgentPlan | None:
    """Return what became of a plan; None: the ledger must be looked at.

    In a boot in which it was carried out, a plan stays so, even if an operator has undone it since.
    A later boot carries out again only what was undone.

    Args:
        agent: in the boot in which it sends the plan.
        digest: of the plan.
        undone: of the reshapes in `reshapes_of` that are known, whether they were undone.
        now: wall-clock time.
    """
    assert agent.boot_id is not None
    own = reshape_id_for(agent.uuid, agent.boot_id, digest)
    known = agent.plan if agent.plan is not None and agent.plan.digest == digest else None
    same_boot = known is not None and known.boot_id == agent.boot_id
    if own in undone:
        outcome = PlanOutcome.UNDONE if undone[own] else PlanOutcome.DONE
        if known is not None and same_boot and known.reshape == own:
            return replace(known, outcome=outcome)
        return AgentPlan(digest, agent.boot_id, outcome, now, own)
    if known is None:
        return None
    if known.reshape is not None and undone.get(known.reshape, False):
        return replace(known, outcome=PlanOutcome.UNDONE) if same_boot else None
    if same_boot:
        return known
    return AgentPlan(digest, agent.boot_id, PlanOutcome.SATISFIED, now, known.reshape)


def check_may_plan(agent: Agent) -> ProviderId:
    """Return the root of a machine that may change its shape. Raises NOT_ACCEPTED."""
    if agent.root is None or not agent.accepted:
        raise Error(
            Code.NOT_ACCEPTED,
            f"Agent {agent.uuid} has no providers before an operator accepts it, so a plan has"
            " nothing to change: send it later.",
        )
    return agent.root


def noted(agent: Agent, plan: AgentPlan, now: Instant) -> Changes:
    """Return the change that keeps what became of a plan; equal: none."""
    return changes_of(agent, replace(agent, plan=plan), now)
