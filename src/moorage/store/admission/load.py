"""Loads admission's facts by keys, under its one lock: one round trip, a second only if needed.

The lock is the row of the arrival numbers, `admission_clock`. It is taken after the ledger's rows
and before service time and the revision. Its holder reads committed data, and no other transaction
can decide until it commits.
"""

from collections.abc import Callable, Sequence

from moorage.core.admission.admit import order
from moorage.core.admission.alternatives import pools_named
from moorage.core.admission.bars import room_of
from moorage.core.admission.booking_model import BOOKED_PRIORITY
from moorage.core.admission.bounds import owner_queue_max
from moorage.core.admission.facts import Facts, Keys, Line
from moorage.core.admission.model import Lease, PoolSpec
from moorage.core.admission.owners import BOSKOS, project_of
from moorage.core.admission.sharing.preemption import yielding
from moorage.core.clock import Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.limits import CALLED_MAX, DUE_MAX, YIELDING_MAX
from moorage.core.wishes import suits
from moorage.store import service_clock
from moorage.store.admission.rows import (
    RANK_LEAST,
    booking_from_body,
    bookings_from_bodies,
    counts_from_text,
    holding_from_text,
    lease_from_row,
    leases_from_rows,
    pool_from_body,
    slot_from_body,
    slots_from_bodies,
    template_from_body,
)
from moorage.store.api import Plan, Query, Row
from moorage.store.encoding import NO_KEYS, encode, key_set

NEVER_YET = Instant(0)
"""Before any wait."""


def facts_load(keys: Keys) -> Plan[Facts]:
    """Lock admission and load what the keys name; missing objects are not in the facts."""
    leases = _lease_queries(keys)
    arrivals, clock, pools, *found = yield [
        Query("admission_lock"),
        service_clock.LOCK,
        pools_query(keys),
        *leases,
    ]
    facts = Facts(service_clock.timeline_from_rows(clock), arrivals[0][0])
    pools_take(facts, pools)
    placed: set[LeaseId] = set()
    """Leases whose pools are needed as well."""
    for query, rows in zip(leases, found, strict=True):
        if query.block == "slots_load_by_name":
            _slots_take(facts, rows)
            continue
        if query.block in ("bookings_load", "bookings_load_by_key"):
            found_bookings = [booking_from_body(body) for (body,) in rows]
            facts.bookings.update((one.id, one) for one in found_bookings)
            continue
        loaded = leases_from_rows(rows)
        for lease in loaded:
            _lease_take(facts, lease)
        found_ids = {lease.id for lease in loaded}
        placed |= found_ids & keys.leases if query.block == "leases_load" else found_ids
        if query.block == "leases_load_due":
            facts.due = [lease.id for lease in loaded]
    if keys.templates or not keys.makable <= facts.pools.keys():
        (rows,) = yield [Query("templates_load")]
        templates_take(facts, rows)
    needed = {need.pool for key in placed for need in facts.leases[key].needs}
    for key in placed:
        if facts.leases[key].alternatives:
            needed |= pools_named(facts.leases[key])
    yield from pools_load(facts, needed - keys.pools)
    yield from _heads_load(facts, keys.heads & facts.leases.keys())
    yield from _waits_load(facts, keys)
    return facts


def lines_load(
    facts: Facts,
    wanted: dict[str, int],
    stuck: Callable[[str], str] = lambda _: "[]",
    alive: Instant = NEVER_YET,
) -> Plan[None]:
    """Load the lines of some pools, up to the wanted number of tickets or to their ends.

    Skips tickets that `admit` would certainly pass over. Tickets that are already loaded keep the
    changes that the batch made to them.

    Args:
        facts: the tickets are added to these.
        wanted: number of tickets by pool.
        stuck: returns the tickets of a pool that are known not to fit into the ledger, and what
            blocks each of them, see `Misfits.stuck`.
        alive: alive time now.
    """
    queries = []
    for pool, tickets in wanted.items():
        line = facts.lines.setdefault(pool, Line())
        known, after = line.tickets, line.end or (RANK_LEAST, 0, 0)
        # Reads one more than wanted, to see whether the line continues.
        most, owners = room_of(facts, facts.pools[pool])
        missing = tickets - len(known) + 1
        room = (most, encode(owners), stuck(pool), alive, f"{BOSKOS}%", _hopeless(facts, pool))
        queries.append(Query("line_load", (pool, *after, missing, *room)))
    yields: set[str] = set()
    for pool in wanted:
        if facts.pools[pool].yields or facts.pools[pool].spec.cohort is not None:
            yields |= yielding(facts, facts.pools[pool])
    if yields:
        queries.append(Query("leases_load_yielding", (key_set(yields), YIELDING_MAX)))
    results = yield queries
    found: list[Lease] = []
    if yields:
        *results, rows = results
        for lease in leases_from_rows(rows):
            found.append(lease)
            if lease.id not in facts.leases:
                _lease_take(facts, lease)
    for (pool, tickets), rows in zip(wanted.items(), results, strict=True):
        line = facts.lines[pool]
        more = tickets - len(line.tickets)
        line.whole = len(rows) <= more
        for ticket in leases_from_rows(rows[:more]):
            line.tickets.append(ticket.id)
            line.end = order(ticket)
            found.append(ticket)
            if ticket.id not in facts.leases:
                _lease_take(facts, ticket)
    yield from _gangs_load(facts, found)


def _hopeless(facts: Facts, pool: str) -> str:
    """Return the labels that tickets of a line ask for, but that no free slot has.

    Such a ticket can be granted nothing, and there is nothing to set aside for it.
    """
    sought = facts.pools[pool].sought
    if not sought:
        return "[]"
    idle = [slot for slot in facts.slots.get(pool, {}).values() if not slot.occupied]
    return encode(
        [text for text in sorted(sought) if not any(suits(one.labels, text) for one in idle)]
    )


def _lease_queries(keys: Keys) -> list[Query]:
    """Return one query for each way in which the keys name leases or bookings."""
    queries = []
    if keys.leases or keys.heard:
        queries.append(Query("leases_load", (key_set(keys.leases | keys.heard),)))
    if keys.asked:
        queries.append(Query("leases_load_by_key", (encode(sorted(keys.asked)),)))
    if keys.groups:
        queries.append(Query("leases_load_by_group", (encode(sorted(keys.groups)),)))
    if keys.slots:
        queries.append(Query("leases_load_by_slot", (encode(sorted(keys.slots)),)))
    if keys.ends:
        queries.append(Query("leases_load_by_pool", (key_set(keys.ends),)))
    if keys.holders:
        queries.append(Query("leases_load_by_holder", (key_set(keys.holders),)))
    if keys.touched:
        queries.append(Query("slots_load_by_name", (key_set(keys.touched),)))
    if keys.bookings:
        queries.append(Query("bookings_load", (key_set(keys.bookings),)))
    if keys.called:
        queries.append(Query("leases_load_by_booking", (key_set(keys.called), CALLED_MAX)))
    if keys.booked:
        queries.append(Query("bookings_load_by_key", (encode(sorted(keys.booked)),)))
    if keys.due is not None:
        queries.append(Query("leases_load_due", (keys.due, DUE_MAX)))
    return queries


def pools_query(keys: Keys) -> Query:
    """Return the query for the pools that the keys name; `pools_take` reads its rows."""
    return Query(
        "pools_load",
        (
            key_set(keys.pools | keys.ends | keys.holders | keys.quotas | keys.calendars),
            key_set(keys.leases),
            encode(sorted(keys.slots)) if keys.slots else NO_KEYS,
            keys.due,
            DUE_MAX,
            key_set(keys.quotas) if keys.quotas else NO_KEYS,
            key_set(keys.member_groups) if keys.member_groups else NO_KEYS,
            key_set(keys.cohorts) if keys.cohorts else NO_KEYS,
            key_set(keys.calendars) if keys.calendars else NO_KEYS,
            key_set(keys.bookings) if keys.bookings else NO_KEYS,
        ),
    )


def _heads_load(facts: Facts, leases: set[LeaseId]) -> Plan[None]:
    """Load the places of the first tickets of the lines of some leases, without booked ones."""
    pools = sorted({need.pool for lease in leases for need in facts.leases[lease].needs})
    if not pools:
        return
    results = yield [Query("line_head", (pool, -BOOKED_PRIORITY)) for pool in pools]
    for pool, rows in zip(pools, results, strict=True):
        for rank, place, arrival in rows:
            facts.heads[pool] = (rank, place, arrival)


def pools_load(facts: Facts, needed: set[str]) -> Plan[None]:
    """Load pools that were not loaded yet: the batch may have changed or deleted the others."""
    missing = needed - facts.pools.keys() - facts.gone
    if missing:
        (rows,) = yield [pools_query(Keys(pools=missing))]
        pools_take(facts, rows)


def _waits_load(facts: Facts, keys: Keys) -> Plan[None]:
    """Count the askers' tickets in each line that is long enough to exceed a limit per owner."""
    if not keys.waiters:
        return
    asked = len(keys.asked)
    pools = {pool.name for pool in facts.pools.values() if pool.waiting + asked > _most(pool.spec)}
    if not pools:
        return
    projects = {f"{project}/" for one in keys.waiters if (project := project_of(one)) is not None}
    owners = (key_set(keys.waiters), key_set(projects))
    (rows,) = yield [Query("waits_count", (key_set(pools), *owners))]
    for pool, owner, tickets in rows:
        facts.waits[pool, owner] = tickets


def _most(spec: PoolSpec) -> int:
    return owner_queue_max(spec.queue_max, spec.queue_max_per_owner)


def pools_take(facts: Facts, rows: Sequence[Row]) -> None:
    """Add the rows of `pools_load` to the facts, except for pools that are or were loaded."""
    for body, slots, held, holding, bookings, calls in rows:
        pool = pool_from_body(body)
        if pool.name in facts.pools or pool.name in facts.gone:
            continue
        facts.pools[pool.name] = pool
        # Slots that were loaded without their pool may have been changed by the batch.
        facts.slots[pool.name] = slots_from_bodies(slots) | facts.slots.get(pool.name, {})
        for owner, units in counts_from_text(held).items():
            facts.held[pool.name, owner] = units
        if holding is not None:
            facts.holding[pool.name] = holding_from_text(holding)
        if bookings is not None:
            for booking in bookings_from_bodies(bookings):
                facts.bookings.setdefault(booking.id, booking)
        if calls is not None:
            for called, tickets in counts_from_text(calls).items():
                facts.calls.setdefault(BookingId(called), tickets)


def templates_take(facts: Facts, rows: Sequence[Row]) -> None:
    """Add the rows of `templates_load` to the facts."""
    for name, body, pools in rows:
        facts.templates[name] = template_from_body(body)
        facts.made[name] = pools


def _slots_take(facts: Facts, rows: Sequence[Row]) -> None:
    """Add slots and their leases to the facts, except for slots of pools that are loaded."""
    for body, *lease in rows:
        slot = slot_from_body(body)
        if slot.pool not in facts.pools:
            facts.slots.setdefault(slot.pool, {})[slot.name] = slot
        if lease[0] is not None:
            _lease_take(facts, lease_from_row(tuple(lease)))


def _lease_take(facts: Facts, lease: Lease) -> None:
    facts.leases[lease.id] = lease
    facts.asked[lease.owner, lease.key] = lease.id


def _gangs_load(facts: Facts, leases: Sequence[Lease]) -> Plan[None]:
    """Load the other pools of tickets of a line, and of leases that may be asked to stop for them.

    Those of tickets are normally already loaded: `pools_load` returns all pools with gangs as soon
    as it returns one. If a stored `gangs` is wrong, this costs one more round trip, but the
    decision still sees every pool, and batches do not fail.
    """
    yield from pools_load(facts, {need.pool for one in leases for need in one.needs})
    for lease in leases:
        for need in lease.needs:
            if need.pool not in facts.pools and need.pool not in facts.gone:
                raise RuntimeError(
                    f"the database is damaged: {lease.id} needs pool {need.pool}, which does not "
                    "exist; `moorage db check` lists all differences"
                )
