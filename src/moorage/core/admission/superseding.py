"""Requests of one group: only the newest waits.

A later request of a group ends the ticket of the group that waits, in its own batch and before any
grant. So at most one ticket of a group waits, and a ticket that was superseded is never granted.

**Which one is later** is decided by the order in which the server decides the requests, not by the
times at which the clients sent them: a request that was lost on its way, and arrives after a newer
one, is the newest. A repeated request is none: its key is known. Nor is a retry, which continues an
earlier attempt: it keeps its units if it may, but it does not wait once it was superseded.

**Who may supersede whom.** A group belongs to a project: requests of all its owners supersede each
other, and never those of another project or of an owner without a project, whatever the role of the
caller is. An owner without a project has its groups for itself. Owners that stand for the clients
of others (`owners.is_reserved`) have no groups: each of these clients would end the tickets of the
others.

**Its place.** If the new request asks for the same as the ticket that it ends, with the same
priority, it takes over the place in line. Otherwise a group that is asked for again and again would
never come to its turn. So a group waits for at most as long as its first ticket would have waited.

**What runs** is not ended: its units are in use. With `cancel_running` its holder is asked to stop,
and to release the lease. It has one TTL for that, after which a holder of which nothing was heard
would have lost the lease, too; outages do not count. Then the lease ends, with the `lock_delay` of
its pools. A lease that is kept for inspection (`keeping.py`) is not asked: nothing runs that could
stop.
Source: docs/decisions/0064-only-the-newest-waits.md.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs

from moorage.core.admission.alternatives import asked
from moorage.core.admission.draft import Draft, by
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease
from moorage.core.admission.owners import is_reserved, project_of
from moorage.core.admission.requests import LeaseRequest, in_order
from moorage.core.clock import Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.limits import ASKED_BYTES_MAX, GROUP_LEASES_MAX, KEY_LENGTH_MAX
from moorage.core.texts import check_plain


class GroupKey(NamedTuple):
    """A group, as it is stored."""

    scope: str
    """A project and a slash, or an owner without a project."""
    name: str


def group_key(owner: str, group: str) -> GroupKey:
    """Return whose group it is, and its name."""
    project = project_of(owner)
    return GroupKey(owner if project is None else f"{project}/", group)


def key_of(lease: Lease) -> GroupKey | None:
    """Return the group of a lease or ticket; None: it is in none."""
    return group_key(lease.owner, lease.group) if lease.group else None


def check_group(request: LeaseRequest) -> None:
    """Raise INVALID if a request may not have its group."""
    if not request.group:
        return
    if is_reserved(request.owner):
        raise Error(
            Code.INVALID,
            f"Owner '{request.owner}' stands for many clients, which would end the tickets of each"
            " other: omit supersede.",
        )
    if len(request.group) > KEY_LENGTH_MAX:
        raise Error(Code.INVALID, f"A group must have 1 to {KEY_LENGTH_MAX} characters.")
    check_plain("The name of a group", request.group)
    if len((request.owner + request.group).encode("utf-8", "surrogatepass")) > ASKED_BYTES_MAX:
        raise Error(
            Code.INVALID,
            f"owner and group together must have at most {ASKED_BYTES_MAX} bytes in UTF-8.",
        )


def live_of(facts: Facts, key: GroupKey) -> Iterator[Lease]:
    """Yield the tickets and leases of a group that have not ended; all must be loaded."""
    for lease in facts.leases.values():
        if lease.group == key.name and lease.state != "ended" and key_of(lease) == key:
            yield lease


def supersede(draft: Draft, request: LeaseRequest) -> Lease | None:
    """End what waits in the group of a new request; return the ticket whose place it takes over.

    With `cancel_running` the holders of leases are asked to stop; in any case these leases know the
    newer request, so that they do not wait again.

    Args:
        draft: of the decision, before the new ticket has joined its lines.
        request: with the id of the new ticket.

    None: it gets a place of its own. Raises INVALID; QUEUE_FULL: too many leases of the group are
    granted.
    """
    check_group(request)
    earlier = list(live_of(draft.facts, group_key(request.owner, request.group)))
    running = [lease for lease in earlier if lease.state == "granted"]
    if len(running) >= GROUP_LEASES_MAX:
        raise Error(
            Code.QUEUE_FULL,
            f"Group '{request.group}' has {counted(len(running), 'lease')} already, which is the"
            " limit. Wait until one of them is released, or use another group.",
        )
    for lease in running:
        draft.put(_noted(draft, lease, request))
    place = None
    for ticket in earlier:
        if ticket.state == "waiting":
            marked = structs.replace(ticket, superseded_by=request.id)
            draft.end(marked, "superseded", by(request.id))
            if _asks_for_the_same(ticket, request):
                place = ticket
    return place


def _noted(draft: Draft, lease: Lease, request: LeaseRequest) -> Lease:
    """Return a lease that knows the newer request, and is asked to stop if that is wanted."""
    stop_until, downtime = lease.stop_until, lease.stop_downtime
    if request.cancel_running and stop_until is None and lease.kept is None:
        ttls = [draft.pool(need.pool).spec.ttl for need in lease.needs]
        within = min(ttls) if lease.ttl is None else lease.ttl
        stop_until = Instant(draft.moment.at + within)
        downtime = draft.moment.at - draft.moment.alive
    return structs.replace(
        lease, superseded_by=request.id, stop_until=stop_until, stop_downtime=downtime
    )


def _asks_for_the_same(ticket: Lease, request: LeaseRequest) -> bool:
    priority = ticket.priority if ticket.priority_asked is None else ticket.priority_asked
    forced = ticket.forced or request.forced
    same = asked(ticket.needs, ticket.alternatives) == asked(
        in_order(request.needs), request.alternatives
    )
    if forced or ticket.booking != request.booking:
        return False
    return same and priority == request.priority
