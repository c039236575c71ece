"""What ends by itself: tickets that nobody asks for any more, leases whose time is over."""

from collections.abc import Iterable

from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Cause, Lease, Moment, due_of
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId


def sweep(
    facts: Facts, moment: Moment, wall: Instant, leases: Iterable[LeaseId]
) -> tuple[Changes, list[LeaseId]]:
    """End what is over of these, `facts.due` as a rule; return the ended ones.

    Pools that are due need nothing done here: `admit` looks at every pool that was loaded. What is
    not over yet, because an outage has postponed it since it was stored, is `postponed`.
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
    """Return why a lease is over that is."""
    if lease.state == "waiting":
        return "unheard"
    held = lease.hold_until is not None and lease.hold_until <= moment.at
    return "hold_over" if held else "ttl_over"
