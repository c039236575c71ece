"""Audit rows of leases that are asked to stop for another ticket: nobody's request says so."""

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease, StopRequest
from moorage.core.admission.units import units_by_pool
from moorage.core.clock import Instant
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.store.access.audit import AuditRow

PREEMPTION = Actor("preemption", None, "")
"""The author of what no caller has asked for: a rule of the pool has decided it."""


def asked_row(facts: Facts, lease: Lease, request: StopRequest, when: When) -> AuditRow:
    """Return the row of a lease that is asked to stop; the facts have the ticket it stops for."""
    before = {"owner": lease.owner, "needs": units_by_pool(lease.needs), "priority": lease.priority}
    # Other names than before: the lease itself keeps its owner and its priority.
    after: dict[str, object] = {"for": lease.preempted_by, "rule": request.rule}
    ticket = None if lease.preempted_by is None else facts.leases.get(lease.preempted_by)
    if ticket is not None:
        after |= {"for_owner": ticket.owner, "for_priority": ticket.priority}
    after["for_pool"] = request.pool
    if lease.stop_until is not None:
        after["until"] = Instant(lease.stop_until - when.moment.at + when.wall)
    return audit_entry(when.wall, PREEMPTION, "lease.preempt", lease.id, before, after)
