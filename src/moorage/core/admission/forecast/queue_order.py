"""The order of a pool's line without the tickets that are passed over.

A ticket that is barred, silent, or does not fit into the ledger keeps its rank, but no ticket waits
for it. If such tickets counted, the next one to be granted might see "50 are ahead".
"""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.admission.bars import bar_of, has_ended, lacking_labels
from moorage.core.admission.facts import Facts
from moorage.core.admission.forecast.eta import LinePlace
from moorage.core.admission.model import Lease, Pool
from moorage.core.admission.units import units_by_pool
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment


class Waiter(Struct, frozen=True):
    """The parts of a ticket in a pool's line that affect the places of others."""

    id: LeaseId
    units: int
    owner: str
    forced: bool = False
    silent_from: int | None = None
    """Of a pull ticket: alive time from which it is passed over unless it is polled before."""
    lease: Lease | None = None
    """The whole ticket, if it also needs other pools, allocations in the ledger, or labels."""


class Queue(Struct, frozen=True):
    """A line as of one moment."""

    places: dict[LeaseId, LinePlace] = {}
    """Of all tickets, including those that are passed over."""
    last: LinePlace = LinePlace(0, 0)
    """Of the last ticket that is not passed over."""
    line: tuple[int, ...] = ()
    """Units of each ticket that is not passed over, in order."""
    gangs: tuple[tuple[int, Lease], ...] = ()
    """Those of them that also need other pools, and their index in `line`."""

    def place_of(self, ticket: Lease, pool: str) -> LinePlace:
        """Return a ticket's place; one that is not in the line comes last."""
        units = units_by_pool(ticket.needs)[pool]
        return self.places.get(ticket.id, LinePlace(self.last.rank + 1, self.last.units + units))


def queue_of(facts: Facts, moment: Moment, pool: Pool, waiters: Iterable[Waiter]) -> Queue:
    """Return the places of tickets, given in the order of the line.

    Args:
        facts: with the pool, its occupied units by owner under a quota, and the pools of gangs.
        moment: now.
        pool: that the line belongs to.
        waiters: all its tickets.
    """
    places: dict[LeaseId, LinePlace] = {}
    line: list[int] = []
    gangs: list[tuple[int, Lease]] = []
    owners: dict[str, int] = {}
    last = LinePlace(0, 0)
    for waiter in waiters:
        place = places[waiter.id] = LinePlace(last.rank + 1, last.units + waiter.units)
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
    """Is a ticket passed over? `ahead`: units granted to its owner before.

    A pause does not count here: it concerns all tickets, so all keep their places.
    """
    bar = bar_of(facts, pool, waiter.owner, waiter.units, ahead)
    if bar not in (None, "paused"):
        return True
    if has_ended(moment, waiter.silent_from):
        return True
    lease = waiter.lease
    if lease is None:
        return False
    if (lease.allocations is not None and lease.detail) or lacking_labels(facts, lease):
        return True
    return any(
        bar_of(facts, facts.pools[name], lease.owner, units) is not None
        for name, units in units_by_pool(lease.needs).items()
        if name in facts.pools and name != pool.name
    )
