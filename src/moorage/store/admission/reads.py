"""Answers queries about pools and leases from rows: each plan reads once, in one snapshot.

Times of leases are service times; the timeline loaded with them converts them to wall-clock times.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.facts import Facts, Keys
from moorage.core.admission.forecast.statistics import starts_per_minute
from moorage.core.admission.model import Lease, Pool, Slot, State, is_unheard
from moorage.core.admission.units import SlotGroup, units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.limits import DUE_MAX, REPORT_LEASES_MAX
from moorage.core.service_time import Moment, Timeline
from moorage.store import service_clock
from moorage.store.admission.load import pools_query, pools_take, templates_take
from moorage.store.admission.rows import (
    booking_from_body,
    claims_of,
    groups_from_text,
    lease_from_body,
    lease_from_row,
    leases_from_rows,
    names_of,
    pool_from_body,
    slot_from_body,
)
from moorage.store.api import Plan, Query, Row
from moorage.store.encoding import key_set

LEASE_ROWS_BYTES = 500
"""Bytes of an ended lease besides its body, in rows and indexes."""


class PoolSeen(NamedTuple):
    """A pool and its slots in groups that are alike; empty if it has no slots."""

    pool: Pool
    slots: list[SlotGroup]


class PoolsSeen(NamedTuple):
    """Pools by name, as of one revision."""

    epoch: int
    revision: int
    timeline: Timeline
    pools: list[PoolSeen]


class LeaseSeen(NamedTuple):
    """A lease or ticket, as of one moment."""

    timeline: Timeline
    lease: Lease


class LeasesSeen(NamedTuple):
    """Leases and tickets in order of arrival, as of one revision."""

    epoch: int
    revision: int
    timeline: Timeline
    leases: list[Lease]


class TicketSeen(NamedTuple):
    """A ticket; its body may be unreadable."""

    arrival: int
    id: LeaseId
    pools: frozenset[str]
    claims: bool | None
    """Whether it needs a claim in the ledger; None: the body cannot be read."""


class EndedLease(NamedTuple):
    """An end of a lease, or of a ticket that was never granted, and its cause."""

    asked_at: Instant
    granted_at: Instant | None
    ended_at: Instant
    cause: str


class OutcomeCount(NamedTuple):
    """Outcomes of the starts at one limit and one number of starts per minute.

    The latter is None for leases that were deleted since; see `forecast/statistics.py`.
    """

    limit: int
    starts_per_minute: int | None
    ok: int
    failed: int
    throttled: int


class PoolReportData(NamedTuple):
    """The data for choosing a pool's limit."""

    ends: list[EndedLease]
    cut: bool
    """There were more ends than `REPORT_LEASES_MAX`: these are the newest."""
    outcomes: list[OutcomeCount]


class SlotSeen(NamedTuple):
    """A slot, and the lease that occupies it."""

    slot: Slot
    lease: Lease | None


class SlotsSeen(NamedTuple):
    """Slots by name, as of one moment."""

    timeline: Timeline
    pool: Pool | None
    slots: list[SlotSeen]


class Oldest(NamedTuple):
    """When the oldest ticket of a pool was asked for, and its oldest lease granted, if any."""

    pool: str
    asked_at: Instant | None
    granted_at: Instant | None


class BookingsSeen(NamedTuple):
    """Bookings by id, as of one revision."""

    epoch: int
    revision: int
    timeline: Timeline
    bookings: list[Booking]


class SlotCount(NamedTuple):
    """The number of slots of a pool in one state and with one owner; "" if they have no owner."""

    pool: str
    state: str
    owner: str
    slots: int


def pools_window(after: str, rows_max: int) -> Plan[PoolsSeen]:
    """Load the pools whose name comes after `after`, in order, at most `rows_max` of them."""
    return (yield from _pools(Query("pools_window", (after, rows_max))))


def pool_load(name: str) -> Plan[PoolsSeen]:
    """Load one pool; `pools` is empty if it does not exist."""
    return (yield from _pools(Query("pool_load", (name,))))


def _pools(query: Query) -> Plan[PoolsSeen]:
    ((epoch, revision, _),), clock, rows = yield [Query("clock_load"), service_clock.LOAD, query]
    timeline = service_clock.timeline_from_rows(clock)
    return PoolsSeen(epoch, revision, timeline, [pool_from_row(row) for row in rows])


def templates_load() -> Plan[Facts]:
    """Load all templates of pools, and how many pools each has made."""
    (rows,) = yield [Query("templates_load")]
    facts = Facts()
    templates_take(facts, rows)
    return facts


def lease_load(lease: LeaseId) -> Plan[LeaseSeen | None]:
    """Load one lease or ticket."""
    clock, leases = yield [service_clock.LOAD, Query("lease_load", (lease,))]
    timeline = service_clock.timeline_from_rows(clock)
    return LeaseSeen(timeline, lease_from_row(leases[0])) if leases else None


def leases_window(
    after: tuple[int, str],
    rows_max: int,
    *,
    pool: str | None = None,
    state: State | None = None,
    owner: str | None = None,
    keys: tuple[str, str] | None = None,
    ids: tuple[str, str] | None = None,
    group: str | None = None,
) -> Plan[LeasesSeen]:
    """Load leases and tickets after (arrival, id), in that order, at most `rows_max` of them.

    `keys` are the first key and the one after the last; they need an owner; `ids` are the same of
    ids; `group` is that of requests. Use `read_aside`: it may read all leases of an owner, or skip
    many of a pool.
    """
    query = _leases_query(after, rows_max, pool, state, owner)
    if keys is not None:
        query = Query("leases_window_by_key", (owner, *keys, *after, state, pool, rows_max))
    elif group is not None:
        query = Query("leases_window_by_group", (group, *after, state, owner, pool, rows_max))
    elif ids is not None:
        query = Query("leases_window_by_id", (*ids, *after, state, owner, pool, rows_max))
    ((epoch, revision, _),), clock, rows = yield [Query("clock_load"), service_clock.LOAD, query]
    timeline = service_clock.timeline_from_rows(clock)
    return LeasesSeen(epoch, revision, timeline, leases_from_rows(rows))


def _leases_query(
    after: tuple[int, str], rows_max: int, pool: str | None, state: State | None, owner: str | None
) -> Query:
    if pool is not None:
        return Query("leases_window_by_pool", (pool, *after, state, owner, rows_max))
    if state in ("waiting", "granted"):
        return Query("leases_window_live", (*after, state, owner, rows_max))
    if owner is not None:
        return Query("leases_window_by_owner", (owner, *after, state, rows_max))
    return Query("leases_window", (*after, state, rows_max))


def tickets_window(after: tuple[int, str], rows_max: int) -> Plan[list[TicketSeen]]:
    """Load the tickets of all pools after (arrival, id), in that order."""
    (rows,) = yield [Query("tickets_window", (*after, rows_max))]
    return [
        TicketSeen(row[0], LeaseId(row[1]), names_of(row[2]), claims_of(row[3])) for row in rows
    ]


def unheard_count(moment: Moment) -> Plan[dict[str, int]]:
    """Count, by pool, the leases that were not renewed in time and still occupy their units.

    Use `read_aside`: it reads the deadlines of all live leases.
    """
    (rows,) = yield [Query("leases_load_silent", (moment.alive,))]
    counts: Counter[str] = Counter()
    for lease in leases_from_rows(rows):
        if is_unheard(lease, moment):
            counts.update(units_by_pool(lease.needs).keys())
    return dict(counts)


def oldest_load() -> Plan[tuple[Timeline, list[Oldest]]]:
    """Load the oldest ticket and lease of each pool. Use `read_aside`: it reads all lines."""
    clock, rows = yield [service_clock.LOAD, Query("oldest_load")]
    return service_clock.timeline_from_rows(clock), [Oldest(*row) for row in rows]


def report_load(pool: str, since: Instant) -> Plan[PoolReportData]:
    """Load a pool's ends since a service time, and all its outcomes; use `read_aside`."""
    ends, starts, outcomes = yield [
        Query("ends_load", (pool, since, REPORT_LEASES_MAX + 1)),
        Query("starts_load", (pool, REPORT_LEASES_MAX)),
        Query("outcomes_count", (pool,)),
    ]
    newest = [EndedLease(*row) for row in ends[:REPORT_LEASES_MAX][::-1]]
    if len(starts) == REPORT_LEASES_MAX:  # the rates of the first minute would be too low
        starts = [row for row in starts if row[0] >= starts[-1][0] + 60 * SECOND]
    return PoolReportData(newest, len(ends) > REPORT_LEASES_MAX, _by_rate(starts, outcomes))


def ended_surplus_load(leases_max: int) -> Plan[tuple[Instant | None, Instant | None]]:
    """Load when the oldest of the newest `leases_max` ended, and the newest that is one too many.

    None: there are not that many. Use `read_aside`: it passes over the ends of all others.
    """
    (rows,) = yield [Query("ended_surplus", (leases_max - 1,))]
    oldest, surplus, *_ = *(Instant(row[0]) for row in rows), None, None
    return oldest, surplus


def ended_sizes_load(after: Instant, leases: int) -> Plan[tuple[Instant, int, int] | None]:
    """Return the last end, the number and the bytes of the next `leases` ends after a time.

    There are more if several ended at the same time. None: there are none. The bytes are those of
    a lease in all tables, about. Use `read_aside`.
    """
    (rows,) = yield [Query("ended_sizes", (after, leases - 1))]
    last, count, size = rows[0]
    return (Instant(last), int(count), int(size) + LEASE_ROWS_BYTES * int(count)) if count else None


def lease_load_by_token(pool: str, token: str) -> Plan[tuple[Timeline, Lease | None]]:
    """Load the granted lease in a pool that has this token, `EPOCH.REVISION.N`."""
    clock, rows = yield [
        service_clock.LOAD,
        Query("lease_load_by_token", (pool, token)),
    ]
    return service_clock.timeline_from_rows(clock), lease_from_row(rows[0]) if rows else None


def leases_load(leases: Collection[LeaseId]) -> Plan[list[Lease]]:
    """Load leases by their ids; missing ones are left out."""
    (rows,) = yield [Query("leases_load", (key_set(leases),))]
    return leases_from_rows(rows)


def slots_load(pool: str) -> Plan[list[Slot]]:
    """Load all slots of a pool, by name."""
    (rows,) = yield [Query("slots_load", (pool,))]
    return [slot_from_body(body) for (body,) in rows]


def slots_window(pool: str, after: str, rows_max: int) -> Plan[SlotsSeen]:
    """Load the slots of a pool whose name comes after `after`, at most `rows_max` of them."""
    clock, pools, rows = yield [
        service_clock.LOAD,
        Query("pool_load", (pool,)),
        Query("slots_window", (pool, after, rows_max)),
    ]
    found = pool_from_row(pools[0]).pool if pools else None
    return SlotsSeen(service_clock.timeline_from_rows(clock), found, _slots_seen(rows))


def slot_load(pool: str, name: str) -> Plan[SlotsSeen]:
    """Load one slot, without its pool; `slots` is empty if it does not exist."""
    clock, rows = yield [service_clock.LOAD, Query("slot_load", (pool, name))]
    return SlotsSeen(service_clock.timeline_from_rows(clock), None, _slots_seen(rows))


def slots_naming_load(
    pools: Collection[str], lease: LeaseId, slots_max: int
) -> Plan[tuple[Timeline, list[Slot]]]:
    """Load slots of some pools that name a lease anywhere, at most `slots_max` of each pool."""
    queries = [Query("slots_naming", (pool, lease, slots_max)) for pool in sorted(pools)]
    clock, *found = yield [service_clock.LOAD, *queries]
    slots = [slot_from_body(row[0]) for rows in found for row in rows]
    return service_clock.timeline_from_rows(clock), slots


def _slots_seen(rows: Sequence[Row]) -> list[SlotSeen]:
    return [
        SlotSeen(slot_from_body(body), None if lease is None else lease_from_body(lease))
        for body, lease in rows
    ]


def pools_by_members() -> Plan[list[Pool]]:
    """Load the pools whose limits follow the members of a group of reporters."""
    (rows,) = yield [Query("pools_by_members")]
    return [pool_from_body(body) for (body,) in rows]


def booked_pools_load(wall: Instant) -> Plan[list[str]]:
    """Load the names of the pools that have bookings at a time by the wall clock."""
    (rows,) = yield [Query("pools_booked", (wall,))]
    return [name for (name,) in rows]


def timeline_load() -> Plan[Timeline]:
    """Load the timeline alone."""
    return (yield from service_clock.timeline_load())


def booking_load(booking: BookingId) -> Plan[tuple[Timeline, Booking | None]]:
    """Load one booking."""
    clock, rows = yield [service_clock.LOAD, Query("booking_load", (booking,))]
    timeline = service_clock.timeline_from_rows(clock)
    return timeline, booking_from_body(rows[0][0]) if rows else None


def bookings_window(
    after: str, rows_max: int, ends_after: Instant, owner: str | None, pool: str | None
) -> Plan[BookingsSeen]:
    """Load bookings by id after one, at most `rows_max`, that end after a time by the wall clock.

    Use `read_aside`: it may skip many of other owners and pools.
    """
    ((epoch, revision, _),), clock, rows = yield [
        Query("clock_load"),
        service_clock.LOAD,
        Query("bookings_window", (after, ends_after, owner, pool, rows_max)),
    ]
    timeline = service_clock.timeline_from_rows(clock)
    return BookingsSeen(epoch, revision, timeline, [booking_from_body(body) for (body,) in rows])


def calendars_load(pools: Collection[str]) -> Plan[Facts]:
    """Load pools with what is spoken for in them, without a lock: for questions."""
    clock, rows = yield [service_clock.LOAD, pools_query(Keys(calendars=set(pools)))]
    facts = Facts(service_clock.timeline_from_rows(clock))
    pools_take(facts, rows)
    return facts


def slots_count() -> Plan[list[SlotCount]]:
    """Count the slots of all pools by pool, state and owner."""
    (rows,) = yield [Query("slots_count")]
    return [SlotCount(*row) for row in rows]


def next_due_load() -> Plan[tuple[Instant | None, bool]]:
    """Return the earliest service time at which a lease is due or a pool is to be woken.

    Also returns whether any lease or ticket is live: a lease of a pool with `expire: keep` is never
    due, but can miss its renewals. Or whether there are bookings: they follow the wall clock, so
    its jumps must be noticed, also if all of them seem to be over.
    """
    (((due, wake_at, lives),),) = yield [Query("due_next")]
    return min((at for at in (due, wake_at) if at is not None), default=None), bool(lives)


def all_due_load(at: Instant) -> Plan[tuple[list[LeaseId], list[str]]]:
    """Return ids of leases and tickets due at a service time, and names of pools to be woken.

    At most the first `DUE_MAX` of each.
    """
    leases, pools = yield [Query("leases_due", (at, DUE_MAX)), Query("pools_due", (at, DUE_MAX))]
    return [LeaseId(lease) for (lease,) in leases], [name for (name,) in pools]


def _by_rate(starts: Sequence[Row], outcomes: Sequence[Row]) -> list[OutcomeCount]:
    """Return outcomes by limit and starts per minute, in that order; unknown rates come first."""
    rates = dict(starts_per_minute((at, units) for at, units in starts))
    counts: dict[tuple[int, int | None], list[int]] = {}
    for limit, granted_at, *results in outcomes:
        line = counts.setdefault((limit, rates.get(granted_at)), [0, 0, 0])
        for index, count in enumerate(results):
            line[index] += count
    ordered = sorted(counts, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    return [OutcomeCount(*key, *counts[key]) for key in ordered]


def pool_from_row(row: Row) -> PoolSeen:
    """Return the pool of a row, and its slots in groups."""
    body, slots = row
    return PoolSeen(pool_from_body(body), groups_from_text(slots))
