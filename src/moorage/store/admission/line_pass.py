"""Reads one pool and its line, to compute the position and the waiting time of each ticket."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec import Struct, structs

from moorage.core.admission.admit import order
from moorage.core.admission.bars import silence_of, silent_from
from moorage.core.admission.facts import Facts, Keys
from moorage.core.admission.forecast.eta import Holder, Waiter
from moorage.core.admission.forecast.holders import SlotHolder, holders_of
from moorage.core.admission.forecast.why import Evidence
from moorage.core.admission.model import Lease, first_end, stops_at
from moorage.core.admission.sharing.preemption import yielding
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.core.limits import YIELDING_MAX
from moorage.store import service_clock
from moorage.store.admission.load import pools_query, pools_take
from moorage.store.admission.rows import (
    RANK_LEAST,
    lease_from_body,
    lease_from_row,
    leases_from_rows,
)
from moorage.store.api import Plan, Query, Row
from moorage.store.encoding import key_set
from moorage.wire.labels import naming_of

PAGE = 5_000
"""Tickets that one query reads."""

PASTS = 200
"""Newest ended leases from which the typical duration of a lease is computed."""

HOLDERS = 500
"""Granted leases whose end is considered individually: those granted first."""


class _Names(Struct, frozen=True, gc=False):
    """The labels that name a holder; see `wire.labels`."""

    holder: str | None = None
    job: str | None = None
    user: str | None = None
    host: str | None = None


class _Body(Struct, frozen=True, gc=False):
    """The members of a lease's body that the pass needs: reading all takes three times as long."""

    labels: _Names
    hold_until: Instant | None = None
    stop_until: Instant | None = None
    held_since: Instant | None = None


_body = msgspec.json.Decoder(_Body)


class LinePass(NamedTuple):
    """A pool as of one moment."""

    facts: Facts
    waiters: list[Waiter]
    """Its line."""
    evidence: Evidence
    """Without the line, which is counted from the waiters."""
    first: Lease | None
    """The first ticket of the line; None if the line is empty."""


def pass_load(pool: str, tickets: int | None = None) -> Plan[LinePass]:
    """Read a pool and its line; if the pool does not exist, the facts do not contain it.

    Args:
        pool: its name.
        tickets: how many tickets to read, at most `PAGE`; None: all of them.
    """
    clock, pools, pasts, owners, holding = yield [
        service_clock.LOAD,
        pools_query(Keys(pools={pool})),
        Query("pasts_load", (pool, PASTS)),
        Query("pool_holders_load", (pool,)),
        Query("pool_holding_load", (pool, HOLDERS)),
    ]
    facts = Facts(service_clock.timeline_from_rows(clock))
    pools_take(facts, pools)
    waiters: list[Waiter] = []
    size = PAGE if tickets is None else min(PAGE, tickets)
    after: tuple[int, int, int] = (RANK_LEAST, 0, 0)
    while True:
        (page,) = yield [Query("line_pass", (pool, *after, size))]
        waiters += map(_waiter, page)
        if len(page) < size or tickets is not None:
            break
        after = (page[-1][1], page[-1][2], page[-1][3])
    asked = [Query("lease_load", (waiters[0].id,)), *_stops(facts, pool)] if waiters else []
    heads, *stops = (yield asked) if asked else [[]]
    bodies = [_body.decode(row[3]) for row in holding]
    named = [
        (owner, units, at, naming_of(owner, *structs.astuple(body.labels)))
        for (units, at, owner, _, _), body in zip(holding, bodies, strict=True)
    ]
    known = facts.pools.get(pool)
    by_slot = known is not None and known.spec.limit is None
    # A lease that was handed over is young, although its units are not.
    handed_over = any(body.held_since is not None for body in bodies)
    shown = len(holding) if by_slot or handed_over else 1
    leases = tuple(
        SlotHolder(row[4], row[1], one[3], body.held_since)
        for row, one, body in zip(holding[:shown], named[:shown], bodies[:shown], strict=True)
    )
    newest = (
        max(one.since for one in leases) if handed_over else holding[-1][1] if holding else None
    )
    evidence = Evidence(
        held=tuple(sorted((ended - granted) / SECOND for _, granted, ended in pasts)),
        holders=holders_of(owners, named),
        slotted=leases if by_slot else (),
        oldest=min(leases, key=attrgetter("since"), default=None),
        newest=newest,
        stopping=_stopping(stops[0], facts.timeline.downtime) if stops else {},
        holding=tuple(
            Holder(row[0], row[1], first_end(body.hold_until, body.stop_until))
            for row, body in zip(holding, bodies, strict=True)
        ),
    )
    return LinePass(facts, waiters, evidence, lease_from_row(heads[0]) if heads else None)


def _stops(facts: Facts, pool: str) -> list[Query]:
    """Return the query for leases that may be stopping for tickets of a pool; usually none."""
    known = facts.pools.get(pool)
    if known is None or not (known.yields or known.spec.cohort is not None):
        return []
    yields = yielding(facts, known)
    return [Query("leases_load_yielding", (key_set(yields), YIELDING_MAX))] if yields else []


def _stopping(rows: Sequence[Row], downtime: int) -> dict[LeaseId, tuple[Instant, ...]]:
    """Return, by ticket, when the leases end at the latest that are asked to stop for it."""
    found: dict[LeaseId, tuple[Instant, ...]] = {}
    for lease in leases_from_rows(rows):
        until = first_end(lease.hold_until, stops_at(lease, downtime))
        if lease.preempted_by is not None and until is not None:
            found[lease.preempted_by] = (*found.get(lease.preempted_by, ()), until)
    return found


def _waiter(row: Row) -> Waiter:
    lease, _, _, _, units, owner, forced, heard_until, patience, body = row
    return Waiter(
        id=lease,
        units=units,
        owner=owner,
        forced=bool(forced),
        silent_from=(
            None if patience is None else silent_from(heard_until or 0, patience, silence_of(owner))
        ),
        lease=None if body is None else lease_from_body(body),
    )


def places_load(places: Sequence[tuple[str, Lease]]) -> Plan[list[int]]:
    """Read how many other tickets of a pool's line are ahead of a ticket, for each of these."""
    read = yield [Query("line_ahead", (pool, one.id, *order(one))) for pool, one in places]
    return [rows[0][0] for rows in read]
