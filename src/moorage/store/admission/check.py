"""Checks admission's rows for consistency: compares columns, sums and slots with the bodies.

A body is the whole value; the other columns of its row must be what `rows.py` would write for it.
Pools and slots are read at once, as every decision on them does. Leases (including the ended ones)
and outcomes are read in pages, and only their sums are kept. At most `FOUND_MAX` differences are
reported.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import MsgspecError, json, structs

from moorage.core.admission.alternatives import pools_named
from moorage.core.admission.bars import left_until
from moorage.core.admission.model import Lease, Pool, Slot, due_of
from moorage.core.admission.units import is_gang, units_by_pool
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import OUTAGE, Moment, Timeline
from moorage.store import service_clock
from moorage.store.admission.rows import (
    RANK_LEAST,
    booking_from_body,
    booking_need_rows,
    booking_row,
    lease_from_body,
    lease_row,
    names_of,
    need_rows,
    outcome_from_body,
    outcome_row,
    pool_from_body,
    pool_row,
    slot_from_body,
    slot_row,
    template_from_body,
    template_row,
)
from moorage.store.api import Plan, Query, Row
from moorage.store.differences import FOUND_MAX, Found, Kind, collected, differing
from moorage.store.encoding import key_set
from moorage.store.sql import columns


class Sums:
    """The sums over the leases added so far."""

    def __init__(self, timeline: Timeline, arrivals: int, names: set[str]) -> None:
        self.timeline = timeline
        self._arrivals = arrivals
        self.names = names
        """The names of all pools."""
        self.needs_met = 0
        """Rows in `lease_need` that were found by their leases."""
        self._occupied: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._gangs: Counter[str] = Counter()
        self._sought: dict[str, Counter[str]] = {}
        self._awaited: dict[str, Counter[str]] = {}
        self._yields: Counter[str] = Counter()
        self._held: dict[tuple[str, str], LeaseId] = {}
        self._arrived = 0

    def add(self, lease: Lease) -> Iterator[str]:
        """Count a lease; yield a message for each of its pools that does not exist."""
        self._arrived = max(self._arrived, lease.arrival)
        if lease.state == "ended":
            return
        for name, units in units_by_pool(lease.needs).items():
            if name not in self.names:
                yield f"lease {lease.id}: pool {name} does not exist"
            if lease.state == "granted":
                self._occupied[name] += units
                self._yields[name] += 0 if lease.preemptible is None else units
            else:
                self._waiting[name] += 1
                self._gangs[name] += is_gang(lease.needs)
        if lease.state == "waiting":
            for need in lease.needs:
                if need.wanted:
                    self._sought.setdefault(need.pool, Counter())[need.wanted] += need.units
                else:
                    self._awaited.setdefault(need.pool, Counter())[need.state] += need.units
            return
        for pool, names in lease.slots.items():
            self._held.update(((pool, name), lease.id) for name in names)

    def sums(self, pools: Iterable[Pool]) -> Iterator[str]:
        """Yield the stored sums of pools, and the count of arrivals, that contradict the leases."""
        if self._arrivals < self._arrived:
            yield (
                f"admission_clock: arrivals is {self._arrivals}, "
                f"it should be {self._arrived} or more"
            )
        for pool in pools:
            name, slotted = pool.name, pool.spec.limit is None
            awaited = dict(self._awaited.get(name, {})) if slotted else {}
            sought = dict(self._sought.get(name, {})) if slotted else {}
            for word, stored, counted, what in (
                ("occupied", pool.occupied, self._occupied[name], "leases sum up to"),
                ("waiting", pool.waiting, self._waiting[name], "tickets are"),
                ("gangs", pool.gangs, self._gangs[name], "tickets with other pools are"),
                ("sought", pool.sought, sought, "units that tickets want by label are"),
                ("awaited", pool.awaited, awaited, "units that tickets want are"),
                ("yields", pool.yields, self._yields[name], "preemptible units are"),
            ):
                if stored != counted:
                    yield f"pool {name}: {word} is {stored}, {what} {counted}"

    def places(self, slots: Iterable[Slot]) -> Iterator[str]:
        """Yield each slot and live lease that do not name each other."""
        held = dict(self._held)
        for slot in slots:
            title = f"slot {slot.pool}/{slot.name}"
            lease = held.pop((slot.pool, slot.name), None)
            if slot.pool not in self.names:
                yield f"{title}: pool {slot.pool} does not exist"
            if (slot.owner != "") != (slot.lease is not None):
                yield f"{title}: owner {slot.owner!r}, lease {slot.lease}"
            if slot.lease != lease:
                holder = "no live lease" if lease is None else f"lease {lease}"
                yield f"{title}: its lease is {slot.lease}, {holder} holds it"
        for (pool, name), lease in held.items():
            yield f"lease {lease}: its slot {pool}/{name} does not exist"


PAGE = 1_000
"""Leases or outcomes that are in memory at a time."""


def _spared(stored: dict[str, Any], value: Lease) -> tuple[str, ...]:
    """Return the columns that may differ from the body.

    It is `pools` if the lease has returned all its slots of a pool, or has lost alternatives: the
    column still names that pool (see `lease_need_trim`).
    """
    if not value.slots and not value.alternatives:
        return ()
    try:
        names = names_of(stored["pools"])
    except MsgspecError:
        return ()
    whole = names.issuperset(pools_named(value)) and stored["pools"] == key_set(names)
    return ("pools",) if whole else ()


POOL = Kind("pool {name}", "pool_upsert", pool_from_body, pool_row)
TEMPLATE = Kind("template {name}", "template_upsert", template_from_body, template_row)
SLOT = Kind("slot {pool}/{name}", "slot_upsert", slot_from_body, slot_row)
LEASE = Kind("lease {id}", "lease_upsert", lease_from_body, lease_row, _spared)
BOOKING = Kind("booking {id}", "booking_upsert", booking_from_body, booking_row)
OUTCOME = Kind(
    "outcome of lease {lease} in pool {pool}",
    "outcome_insert",
    outcome_from_body,
    outcome_row,
)


def differences_load() -> Plan[list[str]]:
    """Return the differences between stored and expected rows; empty if there are none.

    Use `read_aside`: it reads everything.
    """
    return (yield from collected("admission", _compared))


def _compared(found: Found) -> Plan[None]:
    clock, arrivals, pool_rows, slot_rows, template_rows = yield [
        service_clock.LOAD,
        Query("arrivals_load"),
        Query("pools_snapshot"),
        Query("slots_snapshot"),
        Query("templates_load"),
    ]
    list(found.read(TEMPLATE, [row[:2] for row in template_rows]))
    pools = [value for _, value in found.read(POOL, pool_rows)]
    slots = [value for _, value in found.read(SLOT, slot_rows)]
    tally = Sums(
        service_clock.timeline_from_rows(clock), arrivals[0][0], {row[0] for row in pool_rows}
    )
    yield from _leases(found, tally)
    yield from _needs_adrift(found, tally)
    (dues,) = yield [Query("lease_dues_adrift", (FOUND_MAX + 1,))]
    found.tell(f"lease {lease}: due at {due}, but no such lease exists" for lease, due in dues)
    yield from _outcomes(found, tally)
    yield from _bookings(found, tally, pools)
    found.tell(tally.sums(pools))
    found.tell(tally.places(slots))


def _leases(found: Found, tally: Sums) -> Plan[None]:
    """Compare leases and tickets, including ended ones, and their rows per pool, page by page."""
    after: tuple[int, str] = (RANK_LEAST, "")
    width = len(columns(LEASE.block))
    while True:
        (rows,) = yield [Query("leases_snapshot", (*after, PAGE))]
        if not rows:
            return
        leases = []
        dues = {row[0]: row[width:] for row in rows}
        for stored, lease in found.read(LEASE, [row[:width] for row in rows]):
            found.tell(tally.add(lease))
            found.tell(_due(lease, tally.timeline, *dues[stored["id"]]))
            leases.append(lease)
        last = dict(zip(columns(LEASE.block), rows[-1][:width], strict=True))
        after = (last["arrival"], last["id"])
        yield from _needs(found, tally, leases)


def _needs(found: Found, tally: Sums, leases: Iterable[Lease]) -> Plan[None]:
    """Compare the rows in `lease_need` with the leases that they belong to."""
    expected = {row[:3]: row for lease in leases for row in need_rows(lease)}
    (rows,) = yield [Query("lease_needs_snapshot", (json.encode(list(expected)).decode(),))]
    tally.needs_met += len(rows)
    stored = {row[:3]: row for row in rows}
    names = columns("lease_need_upsert")
    for key, row in expected.items():
        title = f"lease {key[2]} in pool {key[0]}"
        if key in stored:
            found.tell(differing(title, names, stored[key], row))
        else:
            found.tell([f"{title}: it has no row there with arrival {key[1]}"])


def _needs_adrift(found: Found, tally: Sums) -> Plan[None]:
    """Find rows in `lease_need` that belong to no lease; reads them only if the counts differ."""
    (((stored,),),) = yield [Query("lease_needs_count")]
    after: tuple[str, int, str] = ("", RANK_LEAST, "")
    while stored != tally.needs_met:
        (rows,) = yield [Query("lease_needs_window", (*after, PAGE))]
        if not rows:
            return
        for *key, body in rows:
            if tuple(key) not in _need_keys(body):
                pool, arrival, lease = key
                found.tell([f"lease {lease} in pool {pool}: no lease has arrival {arrival} there"])
        after = rows[-1][:3]


def _need_keys(body: str | None) -> set[Row]:
    """Return the keys of a lease's rows in `lease_need`; none if the body cannot be read."""
    try:
        return set() if body is None else {row[:3] for row in need_rows(lease_from_body(body))}
    except MsgspecError:
        return set()


def _outcomes(found: Found, tally: Sums) -> Plan[None]:
    after: Row = ("", RANK_LEAST, "", "")
    names = columns(OUTCOME.block)
    while True:
        (rows,) = yield [Query("outcomes_snapshot", (*after, PAGE))]
        if not rows:
            return
        for stored, _ in found.read(OUTCOME, rows):
            if stored["pool"] not in tally.names:
                found.tell([f"{OUTCOME.title.format(**stored)}: the pool does not exist"])
        last = dict(zip(names, rows[-1], strict=True))
        after = (last["pool"], last["at"], last["lease"], last["body"])


def _bookings(found: Found, tally: Sums, pools: Iterable[Pool]) -> Plan[None]:
    """Compare bookings, their rows per pool, and when the last booking of each pool ends."""
    after, expected = "", set[Row]()
    last: dict[str, int] = {}
    while True:
        (rows,) = yield [Query("bookings_snapshot", (after, PAGE))]
        if not rows:
            break
        for _, booking in found.read(BOOKING, rows):
            for row in booking_need_rows(booking):
                expected.add(row)
                last[row[1]] = max(last.get(row[1], 0), booking.ends_at)
        after = rows[-1][0]
    (needs,) = yield [Query("booking_needs_snapshot")]
    stored = {tuple(row) for row in needs}
    found.tell(
        f"booking {row[0]} in pool {row[1]}: it has no row there" for row in expected - stored
    )
    found.tell(f"booking {row[0]} in pool {row[1]}: it is not there" for row in stored - expected)
    wall = tally.timeline.alive_at - tally.timeline.skew
    for pool in pools:
        until = last.pop(pool.name, 0)
        if until > wall and (pool.booked_until or 0) < until:
            found.tell([f"pool {pool.name}: booked_until is {pool.booked_until}, not {until}"])
    found.tell(
        f"a booking needs pool {name}, which does not exist"
        for name, until in last.items()
        if until > wall
    )


def _due(
    lease: Lease, timeline: Timeline, row: str | None, heard: Any, due: int | None
) -> Iterator[str]:
    """Compare the row in `lease_due` with what the body and the timeline allow.

    Renewals store `heard_until` only in this row: it is at most one TTL after the renewal, which
    was at most `OUTAGE` after `alive_at`. A ticket's may be earlier than in its body, because a
    client that leaves resets it to its patience. A grant without a TTL has one until it is
    confirmed. `due` may be too early by the outages since.
    """
    title = f"lease {lease.id}"
    if lease.state == "ended" or row is None:
        if lease.state != "ended":
            yield f"{title}: nobody looks whether it is over"
        elif row is not None:
            yield f"{title}: due at {due}, but it has ended"
        return
    confirmed = lease.ttl is None and lease.confirm_by is not None and heard is None
    if not confirmed and (heard is None) != (lease.heard_until is None):
        yield f"{title}: heard_until is {heard!r}, its body says {lease.heard_until!r}"
        return
    if heard is not None:
        least, most = _heard_range(lease, timeline)
        if heard < least or (most is not None and heard > most):
            yield f"{title}: heard_until is {heard}, it should be from {least} to {most}"
    known = structs.replace(lease, heard_until=heard)
    soonest, over = due_of(known), due_of(known, timeline)
    if due is None or soonest is None or over is None:
        if due is not over:
            yield f"{title}: due is {due}, it should be {over}"
    elif not soonest <= due <= over:
        yield f"{title}: due is {due}, it should be from {soonest} to {over}"


def _heard_range(lease: Lease, timeline: Timeline) -> tuple[int, int | None]:
    """Return the least and greatest valid `heard_until` of a live lease (None: unknown)."""
    if lease.state == "waiting":
        asked = Moment(lease.asked_at, Instant(lease.asked_at - timeline.downtime))
        return left_until(asked, lease), None
    least = lease.heard_until or 0
    if lease.ttl is None or not timeline.alive_at:
        return least, None
    return least, timeline.alive_at - timeline.downtime + OUTAGE + lease.ttl
