"""Reads everything that is or was in a pool, in one snapshot: leases, line, sums, past leases."""

from operator import itemgetter
from typing import NamedTuple

from moorage.core.admission.forecast.simulate import PastLease
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.service_time import Timeline
from moorage.store import service_clock
from moorage.store.admission.reads import PoolSeen, pool_from_row
from moorage.store.admission.rows import leases_from_rows
from moorage.store.api import Plan, Query


class Sum(NamedTuple):
    """How many leases or tickets of a pool there are, and the units that they have or want."""

    number: int = 0
    units: int = 0


class ContentsSeen(NamedTuple):
    """A pool and what is in it, as of one revision."""

    epoch: int
    revision: int
    timeline: Timeline
    pool: PoolSeen
    leases: list[Lease]
    tickets: list[Lease]
    granted: Sum
    waiting: Sum


def contents_load(pool: str, leases_max: int, tickets_max: int) -> Plan[ContentsSeen | None]:
    """Load a pool with its first leases, by grant, and tickets, in their line; None: no such pool.

    Use `read_aside`: it adds up all live leases and tickets of the pool.
    """
    clock, timeline, pools, leases, tickets, sums = yield [
        Query("clock_load"),
        service_clock.LOAD,
        Query("pool_load", (pool,)),
        Query("pool_leases", (pool, leases_max)),
        Query("pool_tickets", (pool, tickets_max)),
        Query("pool_sums", (pool,)),
    ]
    if not pools:
        return None
    by_state = {state: Sum(number, units) for state, number, units in sums}
    return ContentsSeen(
        epoch=clock[0][0],
        revision=clock[0][1],
        timeline=service_clock.timeline_from_rows(timeline),
        pool=pool_from_row(pools[0]),
        leases=leases_from_rows(leases),
        tickets=leases_from_rows(tickets),
        granted=by_state.get("granted", Sum()),
        waiting=by_state.get("waiting", Sum()),
    )


class PastSeen(NamedTuple):
    """A pool and the leases that it has or had, as of one revision."""

    epoch: int
    revision: int
    timeline: Timeline
    pool: PoolSeen
    past: list[PastLease]
    """In the order of their requests."""
    cut: bool
    """There were more ends than were asked for: these are the newest."""


def past_load(pool: str, since: Instant, ends_max: int) -> Plan[PastSeen | None]:
    """Load a pool with its live leases and tickets, and those that have ended since a time.

    None: no such pool. Use `read_aside`.
    """
    clock, timeline, pools, past = yield [
        Query("clock_load"),
        service_clock.LOAD,
        Query("pool_load", (pool,)),
        Query("pool_past", (pool, since, ends_max + 1)),
    ]
    if not pools:
        return None
    # A rehearsal depends on who was first of those that asked at the same time.
    found = [PastLease(*row) for _, _, *row in sorted(past, key=itemgetter(0, 1))]
    cut = sum(one.ended_at is not None for one in found) > ends_max
    return PastSeen(
        epoch=clock[0][0],
        revision=clock[0][1],
        timeline=service_clock.timeline_from_rows(timeline),
        pool=pool_from_row(pools[0]),
        past=_without_oldest_end(found) if cut else found,
        cut=cut,
    )


def _without_oldest_end(past: list[PastLease]) -> list[PastLease]:
    """Leave out the one end that is too many."""
    ends = [(one.ended_at, n) for n, one in enumerate(past) if one.ended_at is not None]
    _, oldest = min(ends)
    return past[:oldest] + past[oldest + 1 :]
