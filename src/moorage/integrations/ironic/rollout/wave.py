"""How far each node of a wave is: only from what Ironic and Moorage say, so that it can go on.

A wave that was killed continues with the same command: a node that is done stays done, one on which
Ironic works is followed, and one that has failed in this wave is not tried again.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.integrations.ironic.nodes import Node
from moorage.integrations.ironic.states import DONE, VERBS_OF_STATE, is_busy
from moorage.integrations.ironic.wishes import has_begun, hindrance_of
from moorage.wire.admission import Lease

WAVE = "wave"
"""The label of a lease that names its wave."""


class Phase(StrEnum):
    """How far a node is."""

    NEW = "new"
    WAITING = "waiting"
    WORKING = "working"
    """It has its units, or Ironic works on it."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Member:
    """A node of the wave; `detail` is why it waits or has failed."""

    uuid: str
    name: str
    phase: Phase = Phase.NEW
    detail: str = ""
    place: int | None = None


@dataclass(frozen=True)
class Wave:
    """What is to be done, and what is known of it.

    `tried`: nodes for which work has begun in this wave. `refused`: nodes for which Ironic has
    refused it, and why.
    """

    name: str
    verb: str
    tried: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)
    """Nodes of verbs that can always be repeated, for which the work of this wave was done."""

    def remember(self, past: Mapping[str, Collection[Lease]], nodes: Mapping[str, Node]) -> None:
        """Take from leases that have ended which nodes were tried."""
        for uuid, leases in past.items():
            for lease in leases:
                if lease.labels.get(WAVE) != self.name or uuid not in nodes:
                    continue
                if lease.outcome or has_begun(lease.record, nodes[uuid], self.name):
                    self.tried.add(uuid)
                if lease.outcome == "ok":
                    self.succeeded.add(uuid)

    def member(
        self,
        before: Member,
        node: Node | None,
        leases: Collection[Lease],
        tickets: Collection[Lease],
    ) -> Member:
        """Return how far a node is."""
        if node is None:
            return self._at(before, Phase.FAILED, "it is not in Ironic any more")
        state = str(node.get("provision_state"))
        own = [lease for lease in leases if lease.key.endswith(f"/{self.verb}")]
        if own or self.verb in VERBS_OF_STATE.get(state, ()):
            if any(lease.record_version for lease in own) or not own:
                self.tried.add(before.uuid)
            return self._at(before, Phase.WORKING, state)
        if DONE.get(self.verb) == state or before.uuid in self.succeeded:
            return self._at(before, Phase.DONE)
        if before.uuid in self.tried and not leases and not is_busy(state):
            if self.verb not in DONE and state in _kept(self.verb):
                return self._at(before, Phase.DONE)
            return self._at(before, Phase.FAILED, str(node.get("last_error") or f"it is {state}"))
        if before.uuid in self.refused:
            return self._at(before, Phase.FAILED, self.refused[before.uuid])
        if leases or is_busy(state) or node.get("reservation"):
            return self._at(before, Phase.NEW, f"it is {state}")
        if (hindrance := hindrance_of(node, self.verb)) is not None:
            return self._at(before, Phase.FAILED, hindrance)
        for ticket in tickets:
            if ticket.key.endswith(f"/{self.verb}") and ticket.waiting is not None:
                waiting = ticket.waiting
                return self._at(before, Phase.WAITING, waiting.reason, waiting.position)
        return self._at(before, Phase.NEW)

    @staticmethod
    def _at(before: Member, phase: Phase, detail: str = "", place: int | None = None) -> Member:
        return Member(before.uuid, before.name, phase, detail, place)


def counts(members: Collection[Member]) -> Counter[Phase]:
    """Return how many nodes are how far."""
    return Counter(member.phase for member in members)


def may_start(members: Sequence[Member], limit: int) -> list[Member]:
    """Return which nodes may wait for units, so that at most `limit` work at once.

    Those that wait already come first, then the others in the order of the list.
    """
    room = limit - counts(members)[Phase.WORKING]
    waiting = [member for member in members if member.phase is Phase.WAITING]
    new = [member for member in members if member.phase is Phase.NEW and not member.detail]
    return [*waiting, *new][: max(0, room)]


def _kept(verb: str) -> frozenset[str]:
    """Return the states in which a node is after a verb that can always be repeated."""
    after = {"rebuild": "active", "service": "active", "clean": "manageable"}
    return frozenset({after.get(verb, "manageable")})
