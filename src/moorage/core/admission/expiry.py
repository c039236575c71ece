"""Expiry: tickets that are no longer polled, leases whose time is over."""

from collections.abc import Iterable

from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Cause, Lease, due_of, is_unconfirmed
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment


def sweep(
    facts: Facts, moment: Moment, wall: Instant, leases: Iterable[LeaseId]
) -> tuple[Changes, list[LeaseId]]:
    """End those of these leases (usually `facts.due`) that are over; return the ended ones.

    Due pools need nothing here: `admit` scans every loaded pool. A lease that an outage has
    postponed since its due time was stored goes into `Changes.postponed`.
    """
    draft = Draft(facts, moment, wall)
    ended = []
    for key in leases:
        lease = facts.leases.get(key)
        if lease is None or lease.state == "ended":
            continue
        due = due_of(lease, facts.timeline)
        if due is not None and due <= moment.at:
            draft.end(lease, cause_of(lease, moment))
            ended.append(key)
        else:
            draft.changes.postponed.add(key)
    return draft.changes, ended


def cause_of(lease: Lease, moment: Moment) -> Cause:
    """Return why a lease is over; it must be."""
    if lease.state == "waiting":
        return "unheard"
    if lease.hold_until is not None and lease.hold_until <= moment.at:
        return "hold_over"
    return "unconfirmed" if is_unconfirmed(lease) else "ttl_over"
