"""I22: only the newest request of a group waits. I23: pools on demand stay while they are used.

As the rest of the auditor, this computes nothing with the package.
"""

from typing import Any

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Need, Pool
from tests.simulation.admission import calls as do
from tests.simulation.admission.books import Books, PoolBook, claim


def scope(owner: str) -> str:
    """Return whose groups an owner's are: its project's, or its own."""
    return owner.rpartition("/")[0] + "/" if "/" in owner else owner


def group(lease: Lease | do.Ask) -> tuple[str, str]:
    """Return the group of what has one."""
    return (scope(lease.owner), lease.group)


def one_waits(books: Books) -> None:
    """At most one ticket of a group waits."""
    seen: dict[tuple[str, str], Lease] = {}
    for ticket in books.waiting():
        if not ticket.group:
            continue
        other = seen.setdefault(group(ticket), ticket)
        claim(other is ticket, "I22", "two wait of", group(ticket), ticket.id, other.id)
        claim(ticket.superseded_by is None, "I22", ticket.id, "was superseded and waits")


def superseded(
    books: Books,
    before: Lease | None,
    after: Lease,
    at: int,
    alive: int,
    told: list[Any],
    earlier: list[Lease],
) -> None:
    """Check an end because of a newer request; `earlier`: the leases that it has come from."""
    newer = _newer(after, told)
    known = None if after.superseded_by is None else books.find(after.superseded_by)
    claim(newer or known, "I22", after.id, "was superseded by nobody")
    of = group(newer) if newer else group(known.seen) if known else None
    own = [group(one) for one in (after, *earlier) if one.group]
    claim(of in own, "I22", after.id, "was superseded by", of)
    if before is not None and before.state == "granted":
        stop = stops_at(before, at - alive)
        claim(stop is not None and stop <= at, "I22", after.id, "had time to stop until", stop)


def stops_at(lease: Lease, downtime: int) -> int | None:
    """Return when a lease ends whose holder is asked to stop: outages are not its time."""
    until = lease.stop_until
    return None if until is None else until + downtime - lease.stop_downtime


def asked_to_stop(before: Lease | None, after: Lease, at: int, alive: int, told: list[Any]) -> None:
    """Check that only a later request of the group asks a holder to stop, and when it has to."""
    was = None if before is None else before.stop_until
    if after.stop_until == was:
        return
    newer = _newer(after, told)
    claim(was is None and newer is not None, "I22", after.id, "is to stop until", after.stop_until)
    assert newer is not None
    claim(newer.cancel_running, "I22", after.id, "is to stop, but", newer, "did not ask for it")
    claim(group(newer) == group(after), "I22", after.id, "is to stop because of", newer)
    claim(after.kept is None, "I25", after.id, "is kept, and is to stop because of", newer)
    claim(after.stop_downtime == at - alive, "I22", after.id, "counts outages from before")
    if after.ttl is not None:
        claim(after.stop_until == at + after.ttl, "I22", after.id, "stops at", after.stop_until)


def taken_over(after: Lease, changes: Changes) -> Lease | None:
    """Return the ticket whose place in line a new one has, if any."""
    for other in changes.leases.values():
        if other is None or other.superseded_by != after.id or other.state != "ended":
            continue
        if other.arrival == after.arrival and _options(other) == _options(after):
            claim(other.granted_at is None, "I22", after.id, "has the place of a lease:", other.id)
            return other
    return None


def _options(lease: Lease) -> tuple[tuple[Need, ...], ...]:
    """Return what was asked any of."""
    return lease.alternatives or (lease.needs,)


def made(row: Pool, told: list[Any]) -> None:
    """I23: a pool on demand is made by an accepted request for it."""
    asks = [one.call for one in told if isinstance(one.call, do.Ask) and not one.refused]
    wanted = any(row.name in ask.pools for ask in asks)
    claim(wanted, "I23", row.name, "was made for nobody")


def goes(row: Pool, book: PoolBook, used: int, at: int) -> None:
    """I23: a pool goes only if it is one on demand that was idle for long enough."""
    claim(row.on_demand is not None, "I23", row.name, "was deleted by nobody")
    assert row.on_demand is not None
    rested = max([until for until, _ in book.rests], default=0)
    idle = at - max(used, rested)
    claim(idle >= row.on_demand.idle, "I23", row.name, "goes after", idle)


def _newer(lease: Lease, told: list[Any]) -> do.Ask | None:
    """Return the request of this batch that supersedes a lease, if any."""
    for one in told:
        if isinstance(one.call, do.Ask) and one.lease == lease.superseded_by and not one.refused:
            return one.call
    return None
