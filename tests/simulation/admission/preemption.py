"""I28: only who permits it is asked to stop for another ticket, and it has the time that it chose.

As the rest of the auditor, this computes nothing with the package. Whom a ticket may ask, and that
nobody is asked in vain, is checked by a naive rule in tests/core/admission/sharing.
"""

from collections.abc import Iterable, Mapping

from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from tests.simulation.admission.books import Books, claim, units_in
from tests.simulation.admission.newest import stops_at


def is_asked_now(before: Lease | None, after: Lease) -> bool:
    """Is a lease asked to stop for another ticket by this change?"""
    return after.preempted_by is not None and (before is None or before.preempted_by is None)


def asked(books: Books, leases: Iterable[Lease], at: int, alive: int) -> None:
    """Check leases that a batch asks to stop, after all its changes."""
    for lease in leases:
        name = lease.id
        claim(lease.preemptible is not None, "I28", name, "did not permit that it is asked to stop")
        assert lease.preemptible is not None
        assert lease.preempted_by is not None
        claim(lease.state == "granted", "I28", name, "is asked to stop, and is", lease.state)
        until = at + lease.preemptible
        claim(lease.stop_until == until, "I28", name, "stops at", lease.stop_until, "not", until)
        claim(lease.stop_downtime == at - alive, "I28", name, "counts outages from before")
        book = books.live.get(lease.preempted_by)
        claim(book is not None, "I28", name, "is asked to stop for nobody:", lease.preempted_by)
        assert book is not None
        ticket = book.seen
        claim(ticket.state == "waiting", "I28", name, "is asked to stop for", ticket)
        pools = _lines(books, lease, ticket)
        if not pools:
            _lent(books, lease, ticket)
            continue
        if ticket.priority != lease.priority:
            claim(ticket.priority > lease.priority, "I28", name, "is above", ticket.id)
            continue
        shared = any(books.pools[pool].spec.fair_share is not None for pool in pools)
        claim(shared, "I28", name, "is asked to stop by its equal", ticket.id)
        claim(ticket.owner != lease.owner, "I28", name, "is asked to stop by its own", ticket.id)


def _lines(books: Books, lease: Lease, ticket: Lease) -> set[str]:
    """Return the pools of a lease for which a ticket may have it asked to stop; none: it is lent.

    Of alternatives only those count that are in one pool, and in none where units are booked.
    """
    options = [{need.pool for need in needs} for needs in ticket.alternatives or (ticket.needs,)]
    alone = set().union(*(pools for pools in options if len(pools) == 1))
    claim(alone, "I28", lease.id, "is asked to stop for a gang:", ticket.id)
    own = alone & {need.pool for need in lease.needs}
    free = {pool for pool in own or alone if not books.pools[pool].booked}
    claim(free, "I28", lease.id, "is asked to stop where units are booked, by", ticket.id)
    return own & free


def _lent(books: Books, lease: Lease, ticket: Lease) -> None:
    """Check that a lease of another pool is asked to give back what its pool has borrowed."""
    (line,), (need,) = ticket.needs, lease.needs
    cohort = books.pools[line.pool].spec.cohort
    mates = cohort is not None and cohort == books.pools[need.pool].spec.cohort
    claim(mates, "I28", lease.id, "has nothing that it is asked for by", ticket.id)
    held = units_in(books.granted(), need.pool)
    claim(held > books.limit(need.pool), "I28", lease.id, "is asked to stop, and has not borrowed")


def goes_ahead(
    ahead: Mapping[LeaseId, Lease], now: Mapping[LeaseId, Lease | None], stopping: Iterable[Lease]
) -> None:
    """Check tickets whose place has changed: only lower, and only if leases stop for them now."""
    for key, before in ahead.items():
        after = now[key]
        assert after is not None
        claim(after.place < before.place, "I8", key, "goes back to", after.place)
        first = any(lease.preempted_by == key for lease in stopping)
        claim(first, "I8", key, "has another place, and nobody stops for it")


def ended(before: Lease | None, after: Lease, at: int, alive: int) -> None:
    """Check an end because of preemption."""
    claim(before and before.preempted_by, "I28", after.id, "was preempted, but not asked to stop")
    assert before is not None
    claim(before.state == "granted", "I28", after.id, "was preempted, and was", before.state)
    stop = stops_at(before, at - alive)
    claim(stop is not None and stop <= at, "I28", after.id, "had time to stop until", stop)
