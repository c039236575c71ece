"""Preemption: which leases are asked to stop, so that a ticket can start.

Only leases that were asked for as `preemptible` are asked. Their holders have the grace that they
chose; then the lease ends as `preempted`. Its units are free once it has ended, and not before.
Nothing is granted here: the ticket has the first place in line, and waits for them.

**Who may.** A ticket for one pool, at the front of its line, that could start now but for the units
that it lacks, after all that is free, in cooldown or of leases that are stopping already:

* by priority: it has a higher one than the lease;
* by share, in a pool with a fair share and with equal priorities: its sharer would then still have
  no more units per weight than the sharer of the lease has left;
* by loan, in a cohort: it stays within the limit of its pool, and the lease is in a pool that has
  borrowed units.

If what may be asked is not enough for a ticket, nobody is asked for it, or for a ticket behind it:
it would get their units, and could not start either.

**No return.** A lease that was preempted and is asked for again does not preempt in turn. By
priority, it is lower. By share: the exchange left its sharer with at least as much per weight, so
the exchange back would leave the other with less. By loan, who borrows is not within its limit. In
a closed pool each exchange by priority moves units up, and each by share lowers the largest of the
values that it changes, so there is no cycle. Nor does its new ticket take what the lease gave up:
it is lower, or borrows, which comes last; and a ticket for which a lease stops by share gets the
virtual time as its tag, so all that come later are behind it.
Source: docs/decisions/0069-preemption.md.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import structs

from moorage.core.admission import pacing
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import (
    FREE,
    Lease,
    Need,
    Pool,
    Slot,
    StopRequest,
    is_unconfirmed,
)
from moorage.core.admission.sharing.cohorts import cohorts_with
from moorage.core.admission.sharing.fair_share import sharer_of, weight_of
from moorage.core.admission.units import units_by_pool
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment

FRONT = 16
"""Tickets at the front of a line for which leases may be stopping at once."""


def yielding(facts: Facts, pool: Pool) -> set[str]:
    """Return the pools of which leases may be asked to stop for tickets in the line of a pool."""
    cohort = pool.spec.cohort
    found = {pool.name} if pool.yields else set()
    if cohort is None:
        return found
    mates = (one for one in facts.pools.values() if one.spec.cohort == cohort)
    return found | {one.name for one in mates if one.yields}


def pools_that_stop(facts: Facts, now: Callable[[str], Pool], at: Instant) -> list[str]:
    """Return the pools for whose tickets leases may be asked to stop; `now`: after all grants.

    None in which units are booked: the tickets there may wait for a booking.
    """
    found = []
    for stored in facts.pools.values():
        if stored.yields or stored.spec.cohort is not None:
            pool = now(stored.name)
            closed = pool.paused or pool.booked_until is not None or not pacing.is_open(pool, at)
            if pool.waiting and not closed and yielding(facts, stored):
                found.append(stored.name)
    return found


def _request(ticket: Lease, lease: Lease) -> StopRequest:
    """Return why a ticket for units of one pool may have a lease stop, which it may: see above."""
    pool = ticket.needs[0].pool
    if all(need.pool != pool for need in lease.needs):
        return StopRequest("loan", pool)
    return StopRequest("share" if lease.priority == ticket.priority else "priority", pool)


class Stopping:
    """Which leases are asked to stop in one scan, and for whom: `asked`."""

    def __init__(
        self,
        leases: Iterable[Lease | None],
        lines: Collection[str],
        pools: dict[str, Pool],
        slots: Callable[[str], dict[str, Slot]],
        moment: Moment,
    ) -> None:
        """Start without anybody asked.

        Args:
            leases: those that may be asked, after all grants.
            lines: the pools for whose tickets they may be asked, see `pools_that_stop`.
            pools: after all grants.
            slots: after all grants.
            moment: now.
        """
        self._moment = moment
        self._lines = lines
        self._pools = pools
        self._slots: dict[str, dict[str, Slot]] = {
            name: slots(name) for name, pool in self._pools.items() if pool.spec.limit is None
        }
        self._closed: set[str] = set()
        """Pools in which a ticket waits for whom nobody can be asked."""
        self._units = {name: pool.occupied for name, pool in self._pools.items()}
        """Occupied, without those of leases that are stopping, and with those promised."""
        self._cohorts = cohorts_with(self._pools.values(), self._units)
        self._shares: dict[tuple[str, str], int] = {}
        """The same by pool and sharer."""
        self.asked: dict[LeaseId, Lease] = {}
        """Leases that are asked to stop, as they are then."""
        self.requests: dict[LeaseId, StopRequest] = {}
        """Why they are."""
        self.places: dict[LeaseId, int] = {}
        """New tags of tickets for which leases stop by share."""
        self._yielding: list[Lease] = []
        self._unconfirmed: list[Lease] = []
        """Leases that may be asked once it is known that somebody has them."""
        for pool in self._pools.values():
            if pool.sharing is not None:
                for name, one in pool.sharing.sharers.items():
                    self._shares[pool.name, name] = one.held
        for lease in leases:
            if lease is None or lease.state != "granted":
                continue
            if not self._pools.keys() >= {need.pool for need in lease.needs}:
                continue
            if lease.stop_until is not None:
                self._count(lease, -1)
            elif lease.preemptible is not None and is_unconfirmed(lease):
                self._unconfirmed.append(lease)
            elif lease.preemptible is not None and self._is_of_use(lease):
                self._yielding.append(lease)
        # The lowest priority first, then the newest: it loses the least work.
        self._yielding.sort(key=lambda one: (one.priority, -(one.granted_at or 0), one.id))

    def again(self) -> dict[str, Instant]:
        """Return when to judge again in pools whose tickets have asked nobody: no event tells.

        A grant is confirmed or taken back within seconds, and a confirmation scans no line.
        """
        ends = [one.confirm_by for one in self._unconfirmed if one.confirm_by is not None]
        if not ends:
            return {}
        # After an outage it may be confirmed later than that.
        within = max(SECOND, min(ends) - self._moment.alive + 1)
        return dict.fromkeys(self._closed, Instant(self._moment.at + within))

    def judge(self, ticket: Lease) -> bool:
        """Promise the next ticket what will be free, or ask holders to stop for it.

        False: nobody can be asked, and from now on nobody is for those behind it.
        """
        if not self._closed.isdisjoint(need.pool for need in ticket.needs):
            return True
        if len(ticket.needs) == 1 and ticket.needs[0].pool not in self._lines:
            return True  # its first alternative is in a pool in which nobody is asked now
        known = [need for need in ticket.needs if need.pool in self._pools]
        if all(self._lack(need) <= 0 for need in known):
            self._count(ticket, 1)
            return True
        found = self._enough(ticket, known[0]) if len(ticket.needs) == 1 else None
        if found is None:
            self._closed.update(need.pool for need in ticket.needs)
            return False
        for lease in found:
            self.requests[lease.id] = _request(ticket, lease)
            self.asked[lease.id] = structs.replace(
                lease,
                stop_until=Instant(self._moment.at + (lease.preemptible or 0)),
                stop_downtime=self._moment.at - self._moment.alive,
                preempted_by=ticket.id,
            )
        sharing = self._pools[known[0].pool].sharing
        by_share = any(self.requests[one.id].rule == "share" for one in found)
        if sharing is not None and by_share:
            self.places[ticket.id] = min(ticket.place, sharing.now)
        self._yielding = [one for one in self._yielding if one.id not in self.asked]
        self._count(ticket, 1)
        return True

    def _enough(self, ticket: Lease, need: Need) -> list[Lease] | None:
        """Return leases whose units suffice for a ticket, uncounted; None: they do not."""
        if need.wanted or need.state != FREE:
            return None
        before, shares = {**self._units}, {**self._shares}
        found: list[Lease] = []
        for lease in self._choices(ticket, need):
            if self._lack(need) <= 0:
                break
            if self._may(ticket, need, lease):
                self._count(lease, -1)
                found.append(lease)
        if self._lack(need) > 0:
            self._units.update(before)
            self._shares = shares
            return None
        for lease in reversed(found[:-1]):  # a later one may have had all that was missing
            self._count(lease, 1)
            if self._lack(need) > 0:
                self._count(lease, -1)
            else:
                found.remove(lease)
        return found

    def _choices(self, ticket: Lease, need: Need) -> Iterator[Lease]:
        """Yield leases in the order in which they are asked."""
        own: list[Lease] = []
        others: list[Lease] = []
        for lease in self._yielding:
            mine = any(one.pool == need.pool for one in lease.needs)
            (own if mine else others).append(lease)
        for lease in own:
            if self._within(need) >= need.units:
                break
            yield lease
        if need.pool in self._cohorts:
            yield from others

    def _may(self, ticket: Lease, need: Need, lease: Lease) -> bool:
        """May a ticket have a lease asked to stop?"""
        units = units_by_pool(lease.needs)
        if need.pool not in units:
            cohort = self._cohorts[need.pool]
            borrows = (self._cohorts.get(x) is cohort and cohort.borrowed(x) > 0 for x in units)
            return self._within(need) >= need.units and any(borrows)
        if lease.priority != ticket.priority:
            return lease.priority < ticket.priority
        pool = self._pools[need.pool]
        share = pool.spec.fair_share
        if share is None:
            return False
        mine, other = sharer_of(share, ticket), sharer_of(share, lease)
        # What unknown sharers have may be its own, and not the other's.
        unknown = pool.sharing.others if pool.sharing is not None else 0
        gets = self._shares.get((pool.name, mine), 0) + unknown + need.units
        keeps = self._shares.get((pool.name, other), 0) - units[need.pool]
        return mine != other and gets * weight_of(share, other) <= keeps * weight_of(share, mine)

    def _is_of_use(self, lease: Lease) -> bool:
        """Would tickets get its units? Not its drained slots."""
        for name, names in lease.slots.items():
            slots = self._slots.get(name, {})
            if any(one not in slots or slots[one].drain is not None for one in names):
                return False
        return True

    def _lack(self, need: Need) -> int:
        """Return how many units a need lacks; in a cohort also those that are lent."""
        lack, cohort = need.units - self._within(need), self._cohorts.get(need.pool)
        if lack > 0 or cohort is None:
            return lack
        return need.units - cohort.own(need.pool)

    def _within(self, need: Need) -> int:
        """Return how many units the limit of a pool leaves, or its slots."""
        pool, limit = self._pools[need.pool], self._pools[need.pool].spec.limit
        used = self._units[pool.name]
        if limit is not None:
            return limit - used
        idle = sum(
            not one.occupied and one.drain is None and one.state == need.state
            for one in self._slots[pool.name].values()
        )
        return idle + pool.occupied - used

    def _count(self, lease: Lease, sign: int) -> None:
        for name, units in units_by_pool(lease.needs).items():
            pool = self._pools.get(name)
            if pool is None:
                continue
            self._units[name] += sign * units
            if pool.spec.fair_share is not None:
                at = (name, sharer_of(pool.spec.fair_share, lease))
                self._shares[at] = self._shares.get(at, 0) + sign * units
