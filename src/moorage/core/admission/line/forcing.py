"""Forcing the grant of a waiting ticket, for an operator."""

from msgspec import structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.leases import Answer
from moorage.core.admission.line.moving import waiting_of
from moorage.core.admission.owners import is_foreign
from moorage.core.admission.requests import check_slots, lease_of, pools_of
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment


def force(facts: Facts, moment: Moment, lease: LeaseId) -> Answer:
    """Let `admit` grant a ticket in this batch, regardless of limit, pacing, quota and pause.

    In a pool with slots it gets only free ones. A retry of the lease waits in line, because its
    holder has not asked for more. A lease that was forced already does not change.

    Raises LEASE_NOT_FOUND, NOT_WAITING, UNITS_ABOVE_LIMIT; INVALID: it has allocations, which might
    not fit, or it was made through Boskos or the lease proxy, whose clients do not wait for it.
    """
    if (known := lease_of(facts, lease)).forced and known.state == "granted":
        return Changes(), lease
    ticket = waiting_of(facts, lease, "forced")
    if ticket.allocations is not None:
        raise Error(
            Code.INVALID,
            f"Ticket '{lease}' has allocations, which might not fit, so it cannot be forced."
            " Make it the first in line instead.",
        )
    if is_foreign(ticket.owner):
        raise Error(
            Code.INVALID,
            f"Ticket '{lease}' was made through Boskos or the lease proxy, and its client would not"
            " learn of the grant: make it the first in line instead.",
        )
    for pool in pools_of(facts, ticket.needs):
        check_slots(facts, pool, ticket.needs, moment.at)
    if ticket.forced:
        return Changes(), lease
    forced = structs.replace(ticket, forced=True, forced_by_operator=True)
    return Changes(leases={lease: forced}), lease
