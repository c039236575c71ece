"""Ends by others than the holder: revocations, and all tickets and leases that an owner has."""

from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.core.admission import leases, operator_actions
from moorage.core.admission.compat import lease_proxy
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Lease, State
from moorage.core.admission.operator_actions import belongs
from moorage.core.admission.requests import Proof
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.core.wildcards import BELOW
from moorage.service import errors
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.pages import START
from moorage.store.admission import reads
from moorage.store.api import Engine


@dataclass(slots=True)
class LeaseRevoke(LeaseCase):
    """Revoke a lease or ticket; `by` is set, so it leaves an audit row."""

    reason: str

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.leases.get(self.lease)
        changes, self.lease = leases.release(
            facts,
            when.moment,
            when.wall,
            self.lease,
            Proof(),
            cause="revoked",
            detail=self.reason,
        )
        self.leave("lease.revoke", before, changes, when, reason=self.reason)
        return Changes(admission=changes)


@dataclass(slots=True)
class HolderGone(LeaseCase):
    """Revoke a lease whose holder is gone, or forget what is expected of one that has ended.

    `pools` are those that the lease needs. See `lease_proxy.holder_gone`.
    """

    reason: str
    pools: frozenset[str]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(leases={self.lease}, holders=set(self.pools)))

    def decide(self, world: World, when: When) -> Changes:
        facts, self.rows = world.admission, []
        before = facts.leases.get(self.lease)
        changes, self.lease = lease_proxy.holder_gone(
            facts, when.moment, when.wall, self.lease, self.reason
        )
        if before is not None and self.by is not None and (changes.leases or changes.slots):
            shown = {"owner": before.owner, "key": before.key, "state": before.state}
            after = {"reason": self.reason, "holder_is_gone": True}
            row = audit_entry(when.wall, self.by.actor, "lease.revoke", self.lease, shown, after)
            self.rows = [row]
        return Changes(admission=changes)


@dataclass(frozen=True, slots=True)
class Clearing:
    """Whose tickets and leases end, and why; `own`: the owner itself ends them."""

    owner: str
    """An owner, or `PROJECT/*`."""
    states: tuple[State, ...]
    reason: str
    by: Actor
    own: bool = False
    asked_until: Instant | None = None
    """Service time; later requests are left alone."""


@dataclass(slots=True)
class Clear(AuditedUseCase[list[Lease]]):
    """End these leases of an owner; leaves one audit row. Answer: the leases as they were."""

    leases: tuple[LeaseId, ...]
    what: Clearing
    ended: list[Lease] = field(default_factory=list, init=False)

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(leases=set(self.leases)))

    def decide(self, world: World, when: When) -> Changes:
        what, self.rows = self.what, []
        changes, self.ended = operator_actions.clear(
            world.admission,
            when.moment,
            when.wall,
            self.leases,
            what.owner,
            what.states,
            what.reason,
            own=what.own,
            asked_until=what.asked_until,
        )
        if self.ended and not what.own:
            tickets = sum(one.state == "waiting" for one in self.ended)
            counts = {"tickets": tickets, "leases": len(self.ended) - tickets}
            after = {**counts, "reason": what.reason}
            action = "lease.revoke_owner"
            self.rows = [audit_entry(when.wall, what.by, action, what.owner, None, after)]
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> list[Lease]:
        return self.ended


AT_ONCE = 200
"""Leases that one batch ends: some ten milliseconds."""

CLEARED_MAX = 10_000
"""Leases that one call ends: a few seconds."""


class Cleared(NamedTuple):
    """How many have ended; `more`: there were more than one call ends."""

    tickets: int = 0
    leases: int = 0
    more: bool = False


class OwnerClearing:
    """Ends what owners have. Every method raises `Error`."""

    def __init__(self, engine: Engine, transactor: Transactor) -> None:
        self._engine = engine
        self._transactor = transactor

    async def clear(self, what: Clearing, pool: str | None = None) -> Cleared:
        """End at most `CLEARED_MAX` of them; tickets first, or they would be granted meanwhile.

        Args:
            what: whose, in which states, and why.
            pool: only those that need units of it; None: all.
        """
        counts = {"waiting": 0, "granted": 0}
        owner = None if what.owner.endswith(BELOW) else what.owner
        for state in ("waiting", "granted"):
            if state not in what.states:
                continue
            after: tuple[int, str] = START
            while True:
                if sum(counts.values()) >= CLEARED_MAX:
                    return Cleared(counts["waiting"], counts["granted"], more=True)
                plan = reads.leases_window(after, AT_ONCE, pool=pool, state=state, owner=owner)
                with errors.translated():
                    seen = (await self._engine.read_aside(plan)).leases
                found = tuple(one.id for one in seen if belongs(one, what.owner))
                if found:
                    for one in await self._transactor.submit(Clear(found, what)):
                        counts[one.state] += 1
                if len(seen) < AT_ONCE:
                    break
                after = (Instant(seen[-1].arrival), seen[-1].id)
        return Cleared(counts["waiting"], counts["granted"])
