"""Moving a ticket in its lines, for an operator.

The order of every line stays (priority, arrival): a move changes the priority of one ticket, and
nothing else. So it is in the same order in all its lines, and no two gangs can wait for each other.
Source: docs/decisions/0036-operators-move-tickets.md.
"""

from collections.abc import Iterator

from msgspec import structs

from moorage.core.admission.admit import Order, order
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.leases import Answer
from moorage.core.admission.model import Lease
from moorage.core.admission.requests import lease_of
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import MOVED_PRIORITY_MAX, PRIORITY_MAX


def move(facts: Facts, lease: LeaseId, priority: int | None) -> Answer:
    """Give a ticket another priority; None: the lowest one with which it is first in all its lines.

    It keeps its arrival number, so it comes after those that asked earlier with that priority. What
    its request asked for is kept for retries. A ticket that has this place already does not change.

    Args:
        facts: with the lease and its pools; to make it first, with `heads`.
        lease: the ticket.
        priority: from -`PRIORITY_MAX` to `PRIORITY_MAX`, whatever the pools permit to their users.

    Raises LEASE_NOT_FOUND, NOT_WAITING, INVALID.
    """
    ticket = waiting_of(facts, lease, "moved")
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
    for rank, arrival in _places(facts, ticket):
        if (rank, arrival) < mine:
            priority = max(priority, -rank + (arrival < ticket.arrival))
    if priority > MOVED_PRIORITY_MAX:
        raise Error(
            Code.INVALID,
            f"Ticket '{ticket.id}' cannot be first: another has the highest priority,"
            f" {MOVED_PRIORITY_MAX}. Give that one a lower priority before.",
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
        other = lease.state == "waiting" and lease.id != ticket.id
        if other and any(need.pool in pools for need in lease.needs):
            yield order(lease)
