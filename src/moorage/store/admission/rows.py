"""Maps admission's values to rows: a body with the whole value, and columns to search by."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import MsgspecError, json, structs

from moorage.core.admission.admit import order
from moorage.core.admission.alternatives import pools_named
from moorage.core.admission.booking_model import Booking
from moorage.core.admission.model import Lease, Pool, Slot, StartOutcome, Template, first_end
from moorage.core.admission.superseding import key_of
from moorage.core.admission.units import SlotGroup, units_by_pool, units_in_line
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.store.api import Row
from moorage.store.encoding import encode, key_set

RANK_LEAST = -(1 << 62)
"""Lower than any rank: before the first ticket of a line."""

_slot = json.Decoder(Slot)
_slots = json.Decoder(list[Slot])
_counts = json.Decoder(dict[str, int])
_groups = json.Decoder(list[SlotGroup])
_lease = json.Decoder(Lease)
_names = json.Decoder(frozenset[str])
_outcome = json.Decoder(StartOutcome)
_pool = json.Decoder(Pool)
_template = json.Decoder(Template)
_booking = json.Decoder(Booking)
_bookings = json.Decoder(list[Booking])
_holding = json.Decoder(list[tuple[Instant | None, str | None, int]])


def lease_from_body(body: str) -> Lease:
    """Read a lease."""
    return _lease.decode(body)


def pool_from_body(body: str) -> Pool:
    """Read a pool."""
    return _pool.decode(body)


def pool_row(pool: Pool) -> Row:
    """Write a pool: its key, the columns to search by, its body."""
    spec = pool.spec
    made = None if pool.on_demand is None else pool.on_demand.template
    searched = (pool.name, spec.quota, pool.gangs, pool.wake_at, spec.member_group, made)
    return (*searched, spec.cohort, pool.booked_until, encode(pool))


def template_from_body(body: str) -> Template:
    """Read a template of pools."""
    return _template.decode(body)


def template_row(template: Template) -> Row:
    """Write a template of pools."""
    return (template.name, encode(template))


def booking_from_body(body: str) -> Booking:
    """Read a booking."""
    return _booking.decode(body)


def bookings_from_bodies(bodies: str) -> list[Booking]:
    """Read a JSON array of bookings."""
    return _bookings.decode(bodies)


def booking_row(booking: Booking) -> Row:
    """Write a booking; its pools also have rows of their own. A cancelled one ends then."""
    ends_at = booking.ends_at if booking.cancelled_at is None else booking.cancelled_at
    pool = booking.needs[0].pool
    return (booking.id, booking.owner, booking.key, pool, ends_at, encode(booking))


def booking_need_rows(booking: Booking) -> Iterator[Row]:
    """Write one `booking_need` row for each pool; none of a cancelled booking."""
    if booking.cancelled_at is None:
        for pool in sorted(units_by_pool(booking.needs)):
            yield (booking.id, pool, booking.ends_at)


def holding_from_text(text: str) -> dict[tuple[Instant | None, str], int]:
    """Read a JSON array of (hold_until, booking, units)."""
    return {(until, booking or ""): units for until, booking, units in _holding.decode(text)}


def slots_from_bodies(bodies: str | None) -> dict[str, Slot]:
    """Read a JSON array of slots, by name; None: there are none."""
    return {} if bodies is None else {slot.name: slot for slot in _slots.decode(bodies)}


def slot_from_body(body: str) -> Slot:
    """Read a slot."""
    return _slot.decode(body)


def slot_row(slot: Slot) -> Row:
    """Write a slot."""
    return (slot.pool, slot.name, slot.state, slot.owner, slot.lease, encode(slot))


def counts_from_text(text: str | None) -> dict[str, int]:
    """Read a JSON object of numbers by name; None: there are none."""
    return {} if text is None else _counts.decode(text)


def groups_from_text(text: str | None) -> list[SlotGroup]:
    """Read a JSON array of groups of slots; None: there are none."""
    return [] if text is None else _groups.decode(text)


def lease_from_row(row: Row) -> Lease:
    """Read (body, heard_until). For a live lease the separate `heard_until` is newer."""
    lease = _lease.decode(row[0])
    if lease.state == "ended" or lease.heard_until == row[1]:
        return lease
    return structs.replace(lease, heard_until=row[1])


def leases_from_rows(rows: Iterable[Row]) -> list[Lease]:
    """Read rows of (body, heard_until), in their order."""
    return [lease_from_row(row) for row in rows]


def claims_of(body: str) -> bool | None:
    """Return whether a lease needs a claim in the ledger; None: its body cannot be read."""
    try:
        return _lease.decode(body).allocations is not None
    except MsgspecError:
        return None


def names_of(text: str) -> frozenset[str]:
    """Read the pools of a lease."""
    return _names.decode(text)


@lru_cache(maxsize=10_000)
def _pools(names: tuple[str, ...]) -> str:
    return key_set(set(names))


def pools_text(lease: Lease) -> str:
    """Return the pools in which a lease has, or may have had, rows, as a JSON array."""
    if lease.alternatives:
        return key_set(pools_named(lease))
    return _pools(tuple(need.pool for need in lease.needs))


def trim_row(lease: Lease) -> Row:
    """Write the id of a lease and the pools whose rows it keeps, for `lease_need_trim`."""
    return (lease.id, _pools(tuple(need.pool for need in lease.needs)))


def lease_row(lease: Lease) -> Row:
    """Write a lease or ticket; its needs and its deadlines also have rows of their own."""
    return (
        lease.id,
        lease.owner,
        lease.key,
        lease.arrival,
        pools_text(lease),
        lease.state,
        lease.ended_at,
        *((lease.group and key_of(lease)) or (None, None)),
        encode(lease),
    )


def need_rows(lease: Lease) -> Iterator[Row]:
    """Write one `lease_need` row for each pool of a lease.

    Its column `pull`: the ticket is passed over while no request waits for it.
    """
    pools = units_in_line(lease) if lease.alternatives else units_by_pool(lease.needs)
    rank, place, _ = order(lease)
    for pool, units in sorted(pools.items()):
        yield (
            pool,
            lease.arrival,
            lease.id,
            rank,
            place,
            units,
            lease.pull or lease.attended,
            lease.forced,
            lease.owner,
            lease.state,
            None if lease.token is None else str(lease.token),
            lease.asked_at,
            lease.granted_at,
            lease.ended_at,
            lease.cause,
            lease.hold_until
            if lease.stop_until is None
            else first_end(lease.hold_until, lease.stop_until),
            lease.booking,
        )


def outcome_from_body(body: str) -> StartOutcome:
    """Read an outcome."""
    return _outcome.decode(body)


def outcome_row(outcome: StartOutcome) -> Row:
    """Write an outcome."""
    return (
        outcome.pool,
        outcome.at,
        outcome.lease,
        outcome.result,
        outcome.limit,
        encode(outcome),
    )


def due_row(lease: LeaseId, heard_until: Instant | None, due: Instant | None) -> Row:
    """Write the `lease_due` row of a live lease."""
    return (lease, heard_until, due)
