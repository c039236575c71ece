"""Revocations of leases and tickets by operators, which leave audit rows."""

from dataclasses import dataclass

from moorage.core.admission import leases
from moorage.core.admission.compat import lease_proxy
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.leases import Proof
from moorage.core.service_time import When
from moorage.service.access.audit import audit_entry
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.batch.world import Changes, Keys, World


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
