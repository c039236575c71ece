"""Who stands before whom in the line of a pool: without those who are passed over.

A ticket that is barred, silent, or does not fit into the ledger keeps its rank, but nobody waits
for it. Who counts it says "50 are ahead" to whoever is next.
"""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.admission.eta import Place
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease, Moment, Pool
from moorage.core.admission.rules import bar_of
from moorage.core.admission.units import units_by_pool
from moorage.core.ids import LeaseId


class Waiter(Struct, frozen=True):
    """A ticket in the line of a pool, as far as the places of others rest on it."""

    id: LeaseId
    units: int
    owner: str
    forced: bool = False
    silent_from: int | None = None
    """Of a pull ticket: alive time from which it is passed over unless it is polled before."""
    lease: Lease | None = None
    """All of it, if it needs other pools or something of the ledger, too."""


class Queue(Struct, frozen=True):
    """A line as of one moment."""

    places: dict[LeaseId, Place] = {}
    """Of all tickets, those that are passed over included."""
    last: Place = Place(0, 0)
    """Of the last that is not passed over."""
    line: tuple[int, ...] = ()
    """Units of each ticket that is not passed over, in order."""
    gangs: tuple[tuple[int, Lease], ...] = ()
    """Those of them that need other pools, too, and their index in `line`."""

    def place_of(self, ticket: Lease, pool: str) -> Place:
        """Return a ticket's place; who is not in the line came after all that are."""
        units = units_by_pool(ticket.needs)[pool]
        return self.places.get(ticket.id, Place(self.last.rank + 1, self.last.units + units))


def queue_of(facts: Facts, moment: Moment, pool: Pool, waiters: Iterable[Waiter]) -> Queue:
    """Return the places of tickets, given in the order of the line.

    Args:
        facts: with the pool, what is held of it under a quota, and the other pools of gangs.
        moment: now.
        pool: whose line it is.
        waiters: all that wait in it.
    """
    places: dict[LeaseId, Place] = {}
    line: list[int] = []
    gangs: list[tuple[int, Lease]] = []
    owners: dict[str, int] = {}
    last = Place(0, 0)
    for waiter in waiters:
        place = places[waiter.id] = Place(last.rank + 1, last.units + waiter.units)
        ahead = owners.get(waiter.owner, 0)
        if not waiter.forced and _is_passed_over(facts, moment, pool, waiter, ahead):
            continue
        owners[waiter.owner] = ahead + waiter.units
        if waiter.lease is not None and len(units_by_pool(waiter.lease.needs)) > 1:
            gangs.append((len(line), waiter.lease))
        line.append(waiter.units)
        last = place
    return Queue(places, last, tuple(line), tuple(gangs))


def _is_passed_over(facts: Facts, moment: Moment, pool: Pool, waiter: Waiter, ahead: int) -> bool:
    """Is a ticket passed over? `ahead`: units that its owner will be granted before.

    A pool that is paused passes over everybody: then all keep their places.
    """
    bar = bar_of(facts, pool, waiter.owner, waiter.units, ahead)
    if bar not in (None, "paused"):
        return True
    if waiter.silent_from is not None and moment.alive > waiter.silent_from:
        return True
    lease = waiter.lease
    if lease is None:
        return False
    if lease.allocations is not None and lease.detail:
        return True
    return any(
        bar_of(facts, facts.pools[name], lease.owner, units) is not None
        for name, units in units_by_pool(lease.needs).items()
        if name in facts.pools and name != pool.name
    )
