"""Expiry: tickets that are no longer polled, leases whose time is over, unconfirmed grants.

A grant of an attended ticket must be confirmed within `CONFIRM_WITHIN`: by a renewal, by any other
write of its holder, or because the answer that contains it was read. Until then its units are not
in use, so without a confirmation they are free again: without cooldown and lock-delay, also in
pools with `expire: keep`, and slots get back the states that they had.

The client may be alive, but pause between its polls, or be cut off. So its ticket waits again, at
its place; it is passed over until it is polled, and withdrawn after its patience. If nobody can ask
for it any more, it ends with a cause of its own.
Source: docs/decisions/0040-nothing-is-held-by-a-client-that-is-gone.md.
"""

from collections.abc import Iterable

from msgspec import structs

from moorage.core.admission import pools
from moorage.core.admission.booking_model import OVER
from moorage.core.admission.draft import Draft, by
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import (
    Cause,
    Lease,
    confirmed_until,
    due_of,
    is_unconfirmed,
    stops_at,
)
from moorage.core.admission.owners import is_foreign
from moorage.core.admission.requests import lease_of
from moorage.core.clock import Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.service_time import Moment

UNREAD = "its answer was not read"
"""Detail of the end of a grant whose answer was certainly not read."""


def sweep(
    facts: Facts, moment: Moment, wall: Instant, leases: Iterable[LeaseId]
) -> tuple[Changes, list[LeaseId]]:
    """End those of these leases (usually `facts.due`) that are over; return the ended ones.

    Pauses of loaded pools that have reached their end are over; apart from that, due pools need
    nothing here: `admit` scans every loaded pool. A lease that an outage has
    postponed since its due time was stored goes into `Changes.postponed`.
    """
    draft = Draft(facts, moment, wall)
    ended = []
    for key in leases:
        lease = facts.leases.get(key)
        if lease is None or lease.state == "ended":
            continue
        if lease.booking is not None and lease.state == "waiting":
            lease = _as_booked(draft, lease, lease.booking)
        due = due_of(lease, facts.timeline)
        if due is not None and due <= moment.at:
            _over(draft, lease, cause_of(lease, moment))
            ended.append(key)
        else:
            draft.changes.postponed.add(key)
    pools.end_pauses(draft)
    return draft.changes, ended


def cause_of(lease: Lease, moment: Moment) -> Cause:
    """Return why a lease is over; it must be."""
    if lease.state == "waiting":
        until = lease.booked_until
        return "unheard" if until is None or until > moment.at else "revoked"
    if lease.hold_until is not None and lease.hold_until <= moment.at:
        return "hold_over"
    stop = lease.stop_until
    if stop is not None:
        stop = stops_at(lease, moment.at - moment.alive)
    if stop is not None and stop <= moment.at:
        return "superseded" if lease.preempted_by is None else "preempted"
    return "unconfirmed" if is_unconfirmed(lease) else "ttl_over"


def confirm(facts: Facts, moment: Moment, lease: LeaseId) -> Changes:
    """Record that the holder of a grant knows of it; nothing changes if that is known or too late.

    Raises LEASE_NOT_FOUND.
    """
    found = lease_of(facts, lease)
    if not is_unconfirmed(found):
        return Changes()
    return Changes(heard={lease: confirmed_until(found, moment)})


def undelivered(facts: Facts, moment: Moment, wall: Instant, lease: LeaseId) -> Changes:
    """Take back a grant that was not confirmed; nothing changes if it was.

    `facts` contain its pools, `wall` is stored in slots. Raises LEASE_NOT_FOUND.
    """
    found, draft = lease_of(facts, lease), Draft(facts, moment, wall)
    if is_unconfirmed(found):
        _over(draft, found, "unconfirmed", UNREAD)
    return draft.changes


def _over(draft: Draft, lease: Lease, cause: Cause, detail: str = "") -> None:
    """End a lease or ticket. The ticket of an unconfirmed grant waits again, as it can be polled.

    Callers of Boskos and of the lease proxy ask again. A forced pull ticket waits for nobody, so it
    would be granted again at once.
    """
    returns = not (is_foreign(lease.owner) or (lease.forced and lease.pull))
    if is_unconfirmed(lease) and returns:
        draft.wait_again(lease)
    elif cause == "superseded" and lease.superseded_by is not None:
        draft.end(lease, cause, by(lease.superseded_by))
    elif cause == "preempted" and lease.preempted_by is not None:
        draft.end(lease, cause, f"for {lease.preempted_by}")
    elif lease.state == "waiting" and cause == "revoked":
        draft.end(lease, cause, OVER)
    else:
        draft.end(lease, cause, detail)


def _as_booked(draft: Draft, ticket: Lease, booking: BookingId) -> Lease:
    """Return a ticket with the present end of its booking: the wall clock may have jumped."""
    until = draft.facts.booked_until(booking)
    if until is None or until == ticket.booked_until:
        return ticket
    changed = structs.replace(ticket, booked_until=until)
    draft.put(changed)
    return changed


def known(lease: Lease, moment: Moment) -> Lease:
    """Return a lease as confirmed, if it is not yet: its holder changes it, so it knows of it."""
    if not is_unconfirmed(lease):
        return lease
    return structs.replace(lease, heard_until=confirmed_until(lease, moment))
