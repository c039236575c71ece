"""Keys that a batch needs beyond those of its requests, found by its decisions."""

from typing import NamedTuple

from moorage.core.ids import AgentId, ConsumerId, ProviderId
from moorage.core.ledger.facts import HoldersCame
from moorage.core.ledger.facts import Keys as LedgerKeys

CLAIMS_MAX = 256
"""Most tickets for which one batch reads more of the ledger; the next batch continues."""


class LedgerNeeded(NamedTuple):
    """Leases to be granted or ended hold something in the ledger that is not loaded."""

    keys: LedgerKeys
    tickets: set[ConsumerId]
    """Consumers of tickets that ask for something."""
    lines: dict[str, int]
    """How many tickets of each line were loaded; the next run begins with more."""


class TreesNeeded(NamedTuple):
    """An agent's decision changes a tree of the ledger that is not loaded."""

    keys: LedgerKeys


class AgentsNeeded(NamedTuple):
    """Agents must follow what a client has written, and are not loaded."""

    agents: set[AgentId]


class MachinesNeeded(NamedTuple):
    """An agent's decision depends on other agents: those of these roots, and these."""

    roots: set[ProviderId]
    agents: set[AgentId]


Needed = LedgerNeeded | TreesNeeded | HoldersCame | AgentsNeeded | MachinesNeeded


class ExtraLoads:
    """The keys that a batch needs beyond those of its requests."""

    def __init__(self) -> None:
        self.keys = LedgerKeys()
        self.tickets: set[ConsumerId] = set()
        """Consumers of tickets found in lines, to be tried."""
        self.lines: dict[str, int] = {}
        """How many tickets of each line to load before the first is tried."""
        self.agents: set[AgentId] = set()
        self.roots: set[ProviderId] = set()

    def add(self, needed: Needed) -> None:
        """Add what one more run has found."""
        if isinstance(needed, AgentsNeeded | MachinesNeeded):
            self.agents |= needed.agents
            if isinstance(needed, MachinesNeeded):
                self.roots |= needed.roots
            return
        self.keys.update(needed.keys)
        if isinstance(needed, LedgerNeeded):
            self.tickets |= needed.tickets
            for pool, known in needed.lines.items():
                self.lines[pool] = min(4 * known, CLAIMS_MAX)

    @property
    def is_enough(self) -> bool:
        """Whether the batch has been run again for as many tickets as allowed."""
        return len(self.tickets) >= CLAIMS_MAX
