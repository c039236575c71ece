"""Is what is stored of admission consistent? Derives every sum and place from the leases again."""

from collections import Counter
from collections.abc import Iterable, Iterator

from moorage.core.admission.model import Lease, Pool, Slot, Timeline, due_of
from moorage.core.admission.units import units_by_pool
from moorage.store.admission_rows import leases_from_rows, pool_from_body, slot_from_body
from moorage.store.api import Plan, Query, Row


def differences_load() -> Plan[list[str]]:
    """Return every difference between what is stored and what should be; none: all is well.

    Run it aside: it reads every pool, every slot, and every lease that lives.
    """
    (timeline,), pool_rows, slot_rows, lease_rows, dues, needs, adrift = yield [
        Query("timeline_load"),
        Query("pools_snapshot"),
        Query("slots_snapshot"),
        Query("leases_live_snapshot"),
        Query("lease_dues_snapshot"),
        Query("lease_needs_snapshot"),
        Query("lease_needs_adrift"),
    ]
    pools = {pool.name: pool for pool in (pool_from_body(body) for (body,) in pool_rows)}
    leases = leases_from_rows(lease_rows)
    slots = [slot_from_body(body) for (body,) in slot_rows]
    return [
        *_sums(pools, leases),
        *_slots(pools, slots, leases),
        *_needs(leases, needs),
        *_dues(Timeline(*timeline), leases, dues),
        *(f"pool {pool}: its lease {lease} is no lease that has ended" for pool, lease in adrift),
    ]


def _sums(pools: dict[str, Pool], leases: Iterable[Lease]) -> Iterator[str]:
    """What pools say of their leases is so, and every pool that is needed is there."""
    occupied: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    gangs: Counter[str] = Counter()
    for lease in leases:
        needed = units_by_pool(lease.needs)
        for name, units in needed.items():
            if name not in pools:
                yield f"lease {lease.id}: pool {name} does not exist"
            if lease.state == "granted":
                occupied[name] += units
            else:
                waiting[name] += 1
                gangs[name] += len(needed) > 1
    for name, pool in pools.items():
        if pool.occupied != occupied[name]:
            yield f"pool {name}: occupied is {pool.occupied}, leases sum up to {occupied[name]}"
        if pool.waiting != waiting[name]:
            yield f"pool {name}: waiting is {pool.waiting}, tickets are {waiting[name]}"
        if pool.gangs != gangs[name]:
            yield f"pool {name}: gangs is {pool.gangs}, tickets with other pools are {gangs[name]}"


def _slots(pools: dict[str, Pool], slots: Iterable[Slot], leases: Iterable[Lease]) -> Iterator[str]:
    """Every held slot is that of a live lease, which says so, and the other way round."""
    held = {
        (pool, name): lease
        for lease in leases
        if lease.state == "granted"
        for pool, names in lease.slots.items()
        for name in names
    }
    for slot in slots:
        lease = held.pop((slot.pool, slot.name), None)
        if slot.pool not in pools:
            yield f"slot {slot.name}: pool {slot.pool} does not exist"
        if (slot.owner != "") != (slot.lease is not None):
            yield f"slot {slot.pool}/{slot.name}: owner {slot.owner!r}, lease {slot.lease}"
        if slot.lease != (None if lease is None else lease.id):
            holder = "no live lease" if lease is None else f"lease {lease.id}"
            yield f"slot {slot.pool}/{slot.name}: its lease is {slot.lease}, {holder} holds it"
    for (pool, name), lease in held.items():
        yield f"lease {lease.id}: its slot {pool}/{name} does not exist"


def _needs(leases: Iterable[Lease], rows: Iterable[Row]) -> Iterator[str]:
    """The rows of lines and holders are those of the live leases."""
    expected = {
        (pool, lease.id): (lease.state, units)
        for lease in leases
        for pool, units in units_by_pool(lease.needs).items()
    }
    stored = {(pool, lease): (state, units) for pool, lease, state, units in rows}
    for key in sorted(expected.keys() | stored.keys()):
        if expected.get(key) != stored.get(key):
            pool, lease = key
            yield f"pool {pool}: of lease {lease} it has {stored.get(key)}, not {expected.get(key)}"


def _dues(timeline: Timeline, leases: Iterable[Lease], rows: Iterable[Row]) -> Iterator[str]:
    """No live lease is looked at later than it is over; what has ended is not looked at."""
    stored: dict[str, int | None] = dict(rows)
    for lease in leases:
        if lease.id not in stored:
            yield f"lease {lease.id}: nobody looks whether it is over"
            continue
        due, over = stored.pop(lease.id), due_of(lease, timeline)
        if over is not None and (due is None or due > over):
            yield f"lease {lease.id}: it is over at {over}, due at {due}"
    for lease_id, due in stored.items():
        yield f"lease {lease_id}: due at {due}, but no lease that lives"
