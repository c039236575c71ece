"""A pass over one pool and its line, for telling everybody in it where they stand."""

from typing import NamedTuple

from moorage.core.admission.eta import Holder, Place
from moorage.core.admission.facts import Facts, Keys
from moorage.core.admission.line import Evidence, places
from moorage.core.admission.model import SECOND, Lease, Timeline
from moorage.core.ids import LeaseId
from moorage.store.admission_load import pools_query, pools_take
from moorage.store.admission_reads import line_window
from moorage.store.admission_rows import lease_from_row
from moorage.store.api import Plan, Query, Row

PAGE = 5_000
"""Tickets of a line that are read at once."""

PASTS = 200
"""Newest ended leases from which it is drawn how long units are held."""

HOLDERS = 500
"""Granted leases that are looked at one by one for when they end: those granted first."""


class Pass(NamedTuple):
    """A pool as of one moment. `last` is the place of the last in its line."""

    facts: Facts
    places: dict[LeaseId, Place]
    last: Place
    evidence: Evidence
    first: Lease | None
    """The ticket that is first in its line."""


def pass_load(pool: str) -> Plan[Pass]:
    """Read a pool and all of its line; of a pool that is not there nothing is in the facts."""
    (timeline,), pools, pasts, holders, holding = yield [
        Query("timeline_load"),
        pools_query(Keys(pools={pool})),
        Query("pasts_load", (pool, PASTS)),
        Query("pool_holders_load", (pool,)),
        Query("pool_holding_load", (pool, HOLDERS)),
    ]
    facts = Facts(Timeline(*timeline))
    pools_take(facts, pools)
    rows: list[tuple[str, LeaseId, int]] = []
    after = None
    while True:
        page = yield from line_window(pool, after, PAGE)
        rows += [(pool, ticket.lease, ticket.units) for ticket in page]
        if len(page) < PAGE:
            break
        after = (page[-1].priority, page[-1].arrival)
    found = {lease: place[pool] for lease, place in places(rows).items()}
    last = found[rows[-1][1]] if rows else Place(0, 0)
    heads: list[Row] = []
    if rows:
        (heads,) = yield [Query("lease_load", (rows[0][1],))]
    evidence = Evidence(
        held=tuple(sorted((ended - granted) / SECOND for _, granted, ended in pasts)),
        holders=tuple((owner, units) for owner, units in holders),
        holding=tuple(Holder(*row) for row in holding),
        line=tuple(units for _, _, units in rows),
    )
    return Pass(facts, found, last, evidence, lease_from_row(heads[0]) if heads else None)
