"""Operators' actions on tickets and leases of others: move, force, end all of an owner.

The order of every line stays `admit.order`: a move changes the priority of one ticket, and
nothing else. So it is in the same order in all its lines, and no two gangs can wait for each other.
Source: docs/decisions/0036-operators-move-tickets.md.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec import structs

from moorage.core.admission.admit import Order, order
from moorage.core.admission.alternatives import asked
from moorage.core.admission.bounds import check_any, check_slots
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Answer, Changes, Facts
from moorage.core.admission.model import Cause, Lease, State
from moorage.core.admission.owners import is_foreign, project_of
from moorage.core.admission.requests import lease_of
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import DETAIL_LENGTH_MAX, MOVED_PRIORITY_MAX, PRIORITY_MAX
from moorage.core.service_time import Moment
from moorage.core.wildcards import BELOW


def move(facts: Facts, lease: LeaseId, priority: int | None) -> Answer:
    """Give a ticket another priority; None: the lowest one with which it is first in all its lines.

    It keeps its place and arrival number, so it comes after those ahead of it with that priority.
    What its request asked for is kept for retries. A ticket that is there already does not change.

    Args:
        facts: with the lease and its pools; to make it first, with `heads`.
        lease: the ticket.
        priority: from -`PRIORITY_MAX` to `PRIORITY_MAX`, whatever the pools permit to their users.

    Raises LEASE_NOT_FOUND, NOT_WAITING, INVALID.
    """
    ticket = waiting_of(facts, lease, "moved")
    if ticket.booking is not None:
        raise Error(Code.INVALID, f"Ticket '{lease}' has a booking, so it is first already.")
    if priority is None:
        priority = _first(facts, ticket)
    elif abs(priority) > PRIORITY_MAX:
        raise Error(Code.INVALID, f"priority must be from -{PRIORITY_MAX} to {PRIORITY_MAX}.")
    if priority == ticket.priority:
        return Changes(), lease
    asked = ticket.priority if ticket.priority_asked is None else ticket.priority_asked
    moved = structs.replace(ticket, priority=priority, priority_asked=asked)
    return Changes(leases={lease: moved}), lease


def waiting_of(facts: Facts, lease: LeaseId, done: str) -> Lease:
    """Return a waiting ticket. Raises LEASE_NOT_FOUND; NOT_WAITING: it cannot be `done`."""
    found = lease_of(facts, lease)
    if found.state != "waiting":
        raise Error(
            Code.NOT_WAITING,
            f"Lease '{lease}' is {found.state}: only a ticket that waits can be {done}.",
        )
    return found


def _first(facts: Facts, ticket: Lease) -> int:
    """Return the priority with which a ticket is first in all its lines. Raises INVALID."""
    mine, priority = order(ticket), ticket.priority
    for other in _places(facts, ticket):
        if other < mine:
            priority = max(priority, -other[0] + (other[1:] < mine[1:]))
    if priority > MOVED_PRIORITY_MAX:
        raise Error(
            Code.INVALID,
            f"Ticket '{ticket.id}' cannot be first: another ticket has the highest priority,"
            f" {MOVED_PRIORITY_MAX}. Give that ticket a lower priority first.",
        )
    return priority


def _places(facts: Facts, ticket: Lease) -> Iterator[Order]:
    """Yield the places that it must precede: the stored first ones, and those of loaded tickets.

    A stored place may be its own: if it was lowered since, those behind that place are not loaded.
    """
    pools = {need.pool for need in ticket.needs}
    for name in pools:
        head = facts.heads.get(name)
        if head is not None:
            yield head
    for lease in facts.leases.values():
        other = lease.state == "waiting" and lease.id != ticket.id and lease.booking is None
        if other and any(need.pool in pools for need in lease.needs):
            yield order(lease)


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
    check_any(
        asked(ticket.needs, ticket.alternatives),
        lambda needs: check_slots(facts, needs, moment.at),
    )
    if ticket.forced:
        return Changes(), lease
    forced = structs.replace(ticket, forced=True, forced_by_operator=True)
    return Changes(leases={lease: forced}), lease


def belongs(lease: Lease, owner: str) -> bool:
    """Does a lease belong to an owner, or to one of a project, written as `PROJECT/*`?"""
    if owner.endswith(BELOW):
        return project_of(lease.owner) == owner.removesuffix(BELOW)
    return lease.owner == owner


def clear(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    leases: Iterable[LeaseId],
    owner: str,
    states: Collection[State],
    detail: str,
    *,
    own: bool = False,
    asked_until: Instant | None = None,
) -> tuple[Changes, list[Lease]]:
    """End those of these leases that an owner has in these states; return them as they were.

    Args:
        facts: with the leases and their pools.
        moment: now.
        wall: wall-clock time, stored in slots.
        leases: to end; those that have changed since they were found are left alone.
        owner: an owner, or `PROJECT/*`.
        states: waiting, granted, or both.
        detail: why, for people.
        own: the owner itself ends them: they are withdrawn or released, not revoked.
        asked_until: service time; later requests are left alone. None: all are ended.
    """
    draft, ended = Draft(facts, moment, wall), []
    for key in leases:
        lease = facts.leases.get(key)
        if lease is None or lease.state not in states or not belongs(lease, owner):
            continue
        if asked_until is not None and lease.asked_at > asked_until:
            continue
        by_owner: Cause = "withdrawn" if lease.state == "waiting" else "released"
        draft.end(lease, by_owner if own else "revoked", detail[:DETAIL_LENGTH_MAX])
        ended.append(lease)
    return draft.changes, ended
