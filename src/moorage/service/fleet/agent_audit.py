"""What the audit trail keeps of an agent, before and after a change."""

from typing import Any

from moorage.core.fleet.model import Agent


def audited(agent: Agent | None) -> dict[str, Any] | None:
    """Return what the audit trail keeps of an agent."""
    if agent is None:
        return None
    return {
        "group": agent.group,
        "labels": dict(agent.labels),
        "policy": agent.policy.value,
        "state": agent.state.value,
        "reason": agent.policy_reason,
        "until": agent.policy_until,
        "root": agent.root,
        "given_root": agent.given_root,
    }
