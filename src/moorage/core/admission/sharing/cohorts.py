"""Cohorts: pools that lend each other the units that they do not use.

**The rule.** A pool of a cohort may occupy up to `borrowing` units beyond its limit, as far as
other pools of the cohort leave units unused that they lend: at most `lending` each. So all of them
together never occupy more than the sum of their limits. A paused pool lends nothing new.

**Reclaim.** No lease is ended. Tickets that stay within the limit of their pool go before all
tickets that would borrow, whatever their priority, and set units aside for which they wait. So what
borrowers give back goes to the lender first. What is set aside for a ticket above its pool's limit
is not its pool's to keep: an earlier one that would borrow may have it, or each of two such tickets
would wait for what is set aside for the other.

A batch that loads one pool of a cohort loads all of them, as with gangs. A pool of a cohort has a
fixed limit, and a request for its units names no other pool.
Source: docs/decisions/0068-fair-share-and-cohorts.md.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, Lease, Pool, PoolSpec
from moorage.core.admission.units import free_units
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import COHORT_POOLS_MAX, MAX_INT, POOL_NAME_LENGTH_MAX
from moorage.core.texts import check_path


class Cohort:
    """What the pools of a cohort may grant, by the units of each that are used.

    Units that are set aside, or promised, count as used.
    """

    def __init__(self, pools: Iterable[Pool], used: dict[str, int]) -> None:
        """Start with the used units of these pools, by name; they may change later."""
        self._pools = {pool.name: pool for pool in pools}
        self._used = used

    def own(self, name: str) -> int:
        """Return how many units a pool may grant within its limit.

        What it does not lend is always there; the rest may be with borrowers.
        """
        lends = self._lends(name)
        return self._unused(name) - lends + max(0, min(lends, self._lendable() - self._lent()))

    def more(self, name: str) -> int:
        """Return how many units a pool may borrow once it uses all of its own."""
        return min(self.most(name), max(0, self._lendable() - self._lends(name) - self._lent()))

    def most(self, name: str) -> int:
        """Return how many units a pool may borrow in this scan, at most."""
        others = sum(
            self._lends(other)
            for other, pool in self._pools.items()
            if other != name and not pool.paused
        )
        left = self._pools[name].spec.borrowing - self.borrowed(name)
        return max(0, min(left, others - self._lent()))

    def borrowed(self, name: str) -> int:
        """Return how many units a pool uses beyond its limit."""
        return max(0, -self._left(name))

    def take(self, name: str, units: int) -> None:
        """Count units of a pool as used."""
        self._used[name] += units

    def give(self, name: str, units: int) -> None:
        """Count units of a pool as unused again."""
        self._used[name] -= units

    def above_limit(self, name: str, units: int) -> bool:
        """Are these more than a pool has without borrowing?"""
        return units > (self._pools[name].spec.limit or 0)

    def _left(self, name: str) -> int:
        return (self._pools[name].spec.limit or 0) - self._used[name]

    def _unused(self, name: str) -> int:
        return max(0, self._left(name))

    def _lends(self, name: str) -> int:
        lending, unused = self._pools[name].spec.lending, self._unused(name)
        return unused if lending is None else min(unused, lending)

    def _lendable(self) -> int:
        return sum(map(self._lends, self._pools))

    def _lent(self) -> int:
        return sum(map(self.borrowed, self._pools))


def cohorts_of(facts: Facts, pools: Collection[Pool], at: Instant) -> dict[str, Cohort]:
    """Return the cohort of each pool that is in one, by the name of the pool.

    Units that are occupied or in cooldown are used.
    """
    used = {
        pool.name: (pool.spec.limit or 0) - free_units(facts, pool, at)[FREE]
        for pool in pools
        if pool.spec.cohort is not None
    }
    return cohorts_with(pools, used)


def cohorts_with(pools: Iterable[Pool], used: dict[str, int]) -> dict[str, Cohort]:
    """Return the same, with these units used."""
    members: dict[str, list[Pool]] = {}
    for pool in pools:
        if pool.spec.cohort is not None:
            members.setdefault(pool.spec.cohort, []).append(pool)
    found: dict[str, Cohort] = {}
    for group in members.values():
        cohort = Cohort(group, used)
        found |= {pool.name: cohort for pool in group}
    return found


def given(
    borrowers: Iterable[tuple[Lease, int]], cohorts: Mapping[str, Cohort]
) -> list[tuple[Lease, int]]:
    """Give back what is set aside for those above the limits of their pools; return all again."""
    found = []
    for ticket, aside in borrowers:
        (need,) = ticket.needs
        cohort = cohorts[need.pool]
        if cohort.above_limit(need.pool, need.units):
            cohort.give(need.pool, aside)
            found.append((ticket, 0))
        else:
            found.append((ticket, aside))
    return found


def merged(
    borrowers: Iterable[tuple[Lease, int]], closed: Collection[str]
) -> Iterator[tuple[Lease, int]]:
    """Yield those that would borrow: of the next of each line, who asked first with its priority.

    Places of two pools cannot be compared, for example the tags of two fair shares. What is
    `closed` meanwhile yields no more.
    """
    lines: dict[str, list[tuple[Lease, int]]] = {}
    for one in borrowers:
        lines.setdefault(one[0].needs[0].pool, []).append(one)
    for line in lines.values():
        line.reverse()
    while lines:
        name = min(lines, key=lambda one: _asked(lines[one][-1][0]))
        yield lines[name].pop()
        if not lines[name] or name in closed:
            del lines[name]


def _asked(ticket: Lease) -> tuple[int, int]:
    return -ticket.priority, ticket.arrival


def awaited_in(pools: Iterable[Pool]) -> set[str]:
    """Return the cohorts of those of these pools that have a line."""
    return {pool.spec.cohort for pool in pools if pool.waiting and pool.spec.cohort is not None}


def check_alone(pools: Iterable[Pool]) -> None:
    """Raise INVALID if a request for several pools names one of a cohort."""
    for pool in pools:
        if pool.spec.cohort is not None:
            raise Error(
                Code.INVALID,
                f"Pool '{pool.name}' is in a cohort, so a request for its units can name no other"
                " pool.",
            )


def check_cohort(spec: PoolSpec) -> None:
    """Raise INVALID if the part of a specification about its cohort is not valid."""
    if spec.cohort is None:
        if spec.lending is not None or spec.borrowing:
            raise Error(Code.INVALID, "lending and borrowing need a cohort.")
        return
    check_path("cohort", spec.cohort, POOL_NAME_LENGTH_MAX)
    if spec.adaptive is not None:
        raise Error(
            Code.INVALID,
            "A pool of a cohort needs a limit that does not adapt: others lend units beyond it, and"
            " an adaptive one bounds what the system behind the pool can do.",
        )
    if spec.limit is None or spec.per_member is not None:
        raise Error(
            Code.INVALID,
            "A pool of a cohort needs a limit: named slots, and units for each member of a group,"
            " cannot be lent.",
        )
    if spec.book_ahead is not None:
        raise Error(Code.INVALID, "Units of a pool in a cohort cannot be booked: omit book_ahead.")
    for name, value in (("lending", spec.lending), ("borrowing", spec.borrowing)):
        if value is not None and not 0 <= value <= MAX_INT:
            raise Error(Code.INVALID, f"{name} must be from 0 to {MAX_INT}.")


def check_joins(facts: Facts, before: Pool | None, spec: PoolSpec) -> None:
    """Raise INVALID if a pool cannot join a cohort now; `facts` have all pools of it."""
    if spec.cohort is None or (before is not None and before.spec.cohort == spec.cohort):
        return
    if before is not None and before.gangs:
        raise Error(
            Code.INVALID,
            f"Tickets in the line of pool '{before.name}' also need other pools, so it cannot join"
            " a cohort yet.",
        )
    if before is not None and before.booked_until is not None:
        raise Error(
            Code.INVALID,
            f"Pool '{before.name}' has bookings, so it cannot join a cohort: cancel them, or wait"
            " until they are over.",
        )
    there = sum(pool.spec.cohort == spec.cohort for pool in facts.pools.values())
    if there >= COHORT_POOLS_MAX:
        raise Error(
            Code.INVALID, f"Cohort '{spec.cohort}' has {there} pools already, which is the most."
        )
