"""Which boot of a machine counts: the one that registered last."""

from moorage.core.errors import Code, Error
from moorage.core.fleet.model import Agent


def check_boot(agent: Agent, boot_id: str) -> None:
    """Raise STALE_BOOT or SUPERSEDED_BOOT unless this is the boot that registered last."""
    check_superseded(agent, boot_id)
    if agent.boot_id is None:
        raise Error(Code.STALE_BOOT, f"Agent {agent.uuid} has never registered: register first.")
    if agent.boot_id != boot_id:
        raise Error(
            Code.STALE_BOOT,
            f"The current boot of agent {agent.uuid} is '{agent.boot_id}', not '{boot_id}': "
            "register again.",
        )


def check_superseded(agent: Agent, boot_id: str) -> None:
    """Raise SUPERSEDED_BOOT for a boot after which the machine has booted again."""
    if boot_id in agent.past_boots:
        raise Error(
            Code.SUPERSEDED_BOOT,
            f"Boot '{boot_id}' of agent {agent.uuid} has been superseded by boot "
            f"'{agent.boot_id}'. If this machine has not booted since, another one uses the same "
            "agent UUID, for example a clone: give each machine its own.",
        )
