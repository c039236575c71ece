"""The cases of an operator in a line: each leaves an audit row."""

from dataclasses import dataclass
from typing import Any

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.line import forcing, moving
from moorage.core.admission.model import Lease
from moorage.core.service_time import When
from moorage.service.access.audit import audit_entry
from moorage.service.admission.lease_cases import LeaseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class TicketMove(LeaseCase):
    """Give a ticket another priority; None: make it the first in all its lines."""

    priority: int | None

    def keys(self) -> Keys:
        heads = {self.lease} if self.priority is None else set()
        return Keys(admission=AdmissionKeys(leases={self.lease}, heads=heads))

    def decide(self, world: World, when: When) -> Changes:
        before = world.admission.leases.get(self.lease)
        changes, _ = moving.move(world.admission, self.lease, self.priority)
        _leave(self, "lease.move", before, changes, when)
        return Changes(admission=changes)


@dataclass(slots=True)
class TicketForce(LeaseCase):
    """Grant a waiting ticket regardless of the limits of its pools."""

    def decide(self, world: World, when: When) -> Changes:
        before = world.admission.leases.get(self.lease)
        changes, _ = forcing.force(world.admission, when.moment, self.lease)
        _leave(self, "lease.force", before, changes, when)
        return Changes(admission=changes)


def _leave(
    case: LeaseCase, action: str, before: Lease | None, changes: AdmissionChanges, when: When
) -> None:
    """Set the audit row of a decision, unless it changes nothing."""
    case.rows = []
    after = changes.leases.get(case.lease)
    if case.by is None or before is None or after is None:
        return
    known = {"owner": before.owner, "key": before.key}
    row = audit_entry(
        when.wall, case.by.actor, action, case.lease, known | _shown(before), _shown(after)
    )
    case.rows = [row]


def _shown(lease: Lease) -> dict[str, Any]:
    needs = {need.pool: need.units for need in lease.needs}
    return {"priority": lease.priority, "forced": lease.forced, "needs": needs}
