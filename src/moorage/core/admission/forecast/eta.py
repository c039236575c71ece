"""How long a ticket may still wait: its pool's line is simulated twice, quickly and slowly.

Leases end, and tickets are granted in order as units and pacing permit, until their leases end. A
lease with a hold ends at its hold at the latest. Otherwise leases are assumed to last, from their
grant, as long as past leases of the pool: their 10th percentile in the quick play, their 90th in
the slow one. So an estimate only counts down while nothing changes. A lease without a hold that
outlasts the 90th percentile is overdue and has no predicted end. New tickets of higher priority and
changes of the pool are not predicted, but a pause that has an end is over then.

A ticket that is barred, silent, or does not fit into the ledger keeps its rank, but no ticket waits
for it: if such tickets counted, the next one to be granted might see "50 are ahead".
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter

from msgspec import Struct

from moorage.core.admission import pacing
from moorage.core.admission.alternatives import Needs, asked
from moorage.core.admission.bars import bar_of, has_ended, lacking_labels
from moorage.core.admission.facts import Facts
from moorage.core.admission.forecast.statistics import percentile
from moorage.core.admission.model import Lease, Pool, Rest
from moorage.core.admission.units import is_gang, units_by_pool, units_in_line
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment

QUICK, SLOW = 10, 90
"""Percentiles of the durations of past leases."""

NEVER = Instant(1 << 62)
"""Later than any time: unknown."""

PLAYED_MAX = 1_000
"""Tickets that are simulated; behind them a steady pace is assumed."""

Range = tuple[float, float]
"""Earliest and latest, in seconds from now."""

Floor = tuple[int, int]
"""Lower bounds of a ticket's grant, for the quick and the slow play; `NEVER`: unknown."""

End = tuple[int, int]
"""When units become free, and how many."""

Untimed = list[tuple[Instant, int]]
"""Grant times and units of leases without a hold; ascending."""


class LinePlace(Struct, frozen=True):
    """A ticket's place in the line of one pool."""

    rank: int
    """1: the first."""
    units: int
    """Units that it and all before it need."""


class Holder(Struct, frozen=True):
    """A granted lease: its units in one pool, its grant time, and the end of its hold, if any."""

    units: int
    granted_at: Instant
    hold_until: Instant | None


class Estimate(Struct, frozen=True):
    """When a ticket may be granted; neither member is set if there is no basis for an estimate."""

    seconds: Range | None = None
    overdue: bool = False
    """It depends on leases that have lasted longer than usual."""


class Outlook:
    """The coming grants in the line of one pool, as of one moment; computed on demand."""

    def __init__(
        self,
        pool: Pool,
        limit: int,
        line: Sequence[int],
        held: Sequence[float],
        holders: Sequence[Holder],
        floors: Mapping[int, Floor] | None = None,
    ) -> None:
        """Prepare the plays.

        Args:
            pool: that the line belongs to.
            limit: the pool's units.
            line: units of each ticket, in order.
            held: durations of past leases of the pool in seconds, ascending. If empty, the pool's
                hold is the latest end; without a hold there is no estimate.
            holders: the pool's leases, in the order of their grants. Occupied units of other leases
                count as granted with the last of these.
            floors: for tickets that also wait for other pools, by index in the line: when those
                pools allow a grant.
        """
        self._pool = pool
        self._limit = limit
        self._line = line
        self._quick = round(percentile(held, QUICK) * SECOND) if held else None
        self._slow = round(percentile(held, SLOW) * SECOND) if held else None
        self._timed = [
            (one.granted_at, one.hold_until, one.units)
            for one in holders
            if one.hold_until is not None
        ]
        self._untimed = [(one.granted_at, one.units) for one in holders if one.hold_until is None]
        self._unlisted = max(0, pool.occupied - sum(one.units for one in holders))
        self._newest = holders[-1].granted_at if holders else None
        self._floors = floors or {}
        self._plays: dict[tuple[str, bool], tuple[_Play, _Play]] = {}

    def of(
        self,
        state: str,
        free: int,
        rests: Iterable[Rest],
        at: Instant,
        place: LinePlace,
        own: int,
        *,
        forced: bool = False,
    ) -> Estimate:
        """Return when a ticket may be granted, as far as this pool is concerned.

        Args:
            state: of the slots that it needs.
            free: units in that state that limit and cooldown leave; may be negative.
            rests: units in that state that are in cooldown.
            at: now, in service time.
            place: of the ticket; it may be beyond the end of the line.
            own: units that it needs.
            forced: whether it is granted also while the pool is paused.
        """
        plays = self._plays.get((state, forced))
        if plays is None:
            plays = self._prepared(free, rests, at, at if forced else self._resumed(at))
            self._plays[state, forced] = plays
        earliest, latest = (play.granted(place, own) for play in plays)
        if earliest >= NEVER:
            return Estimate()
        if latest >= NEVER:
            return Estimate(overdue=True)
        return Estimate((max(0, earliest - at) / SECOND, max(0, latest - at) / SECOND))

    def _resumed(self, at: Instant) -> Instant:
        """Return from when on the pool grants; `NEVER`: its pause has no end."""
        if not self._pool.paused:
            return at
        return NEVER if self._pool.paused_until is None else max(at, self._pool.paused_until)

    def _prepared(
        self, free: int, coming: Iterable[Rest], at: Instant, opens: Instant
    ) -> "tuple[_Play, _Play]":
        rests: list[End] = sorted((rest.until, rest.units) for rest in coming)
        untimed = self._untimed
        if self._unlisted:
            newest = at if self._newest is None else self._newest
            untimed = [*untimed, (newest, self._unlisted)]
        lasts = self._lasts()
        limits = self._pool.spec.pacing
        jitter = 0 if limits is None else limits.jitter
        parts = (self._pool, self._limit, self._line, at, opens, free)
        early = {index: floor[0] for index, floor in self._floors.items()}
        late = {index: floor[1] for index, floor in self._floors.items()}
        return (
            _Play(*parts, merge(rests, self._early_ends(untimed, at)), lasts[0], 0, early),
            _Play(*parts, merge(rests, self._late_ends(untimed, at)), lasts[1], jitter, late),
        )

    def _early_ends(self, untimed: Untimed, at: Instant) -> Iterator[End]:
        """Yield the earliest times at which occupied units become free, and how many; in order."""
        quick, rest = self._quick, self._pool.spec.cooldown
        if quick is None:
            unknown = NEVER if self._pool.spec.hold is None else at
            timed = [(until + rest, units) for _, until, units in self._timed]
            return merge(sorted(timed), ((unknown + rest, units) for _, units in untimed))
        timed = [
            (min(until, max(at, since + quick)) + rest, units)
            for since, until, units in self._timed
        ]
        usual = ((max(at, since + quick) + rest, units) for since, units in untimed)
        return merge(sorted(timed), usual)

    def _late_ends(self, untimed: Untimed, at: Instant) -> Iterator[End]:
        """Yield the latest times at which occupied units become free, where these are known.

        Units of overdue leases are left out.
        """
        slow, rest = self._slow, self._pool.spec.cooldown
        if slow is None:
            slow = self._pool.spec.hold
        timed = sorted((until + rest, units) for _, until, units in self._timed)
        if slow is None:
            return iter(timed)
        late = bisect_left(untimed, at - slow, key=itemgetter(0))
        return merge(timed, ((since + slow + rest, units) for since, units in untimed[late:]))

    def _lasts(self) -> tuple[int | None, int | None]:
        """Return how long future leases will last in the two plays; None: unknown."""
        hold = self._pool.spec.hold
        if hold is None or self._quick is None or self._slow is None:
            return (hold, hold) if self._quick is None else (self._quick, self._slow)
        return min(hold, self._quick), min(hold, self._slow)


class _Play:
    """One simulation of a line. Times are service times, or `NEVER`."""

    def __init__(
        self,
        pool: Pool,
        limit: int,
        line: Sequence[int],
        at: Instant,
        opens: Instant,
        free: int,
        ends: Iterator[End],
        lasts: int | None,
        jitter: int,
        floors: Mapping[int, int],
    ) -> None:
        self._limit = limit
        self._line = line
        self._at: int = at
        self._free = free
        self._coming = ends
        self._ends: list[End] = []
        """Ends of present leases and cooldowns, as far as they were needed; see `_end`."""
        self._next_end = 0
        self._later: list[End] = []
        """Ends of leases that are granted in the play; in order."""
        self._next_later = 0
        self._lasts = None if lasts is None else lasts + pool.spec.cooldown
        self._pacing = pool.spec.pacing
        self._paid: int = pool.paced_at
        self._opens: int = max(opens, pacing.opens_at(pool) or opens)
        self._jitter = jitter
        self._floors = floors
        self._grants: list[int] = []
        self._ahead = 0
        """Units of the tickets in `_grants`."""

    def granted(self, place: LinePlace, own: int) -> int:
        """Return when the ticket at a place is granted; `own`: units that it needs."""
        played = min(len(self._line), PLAYED_MAX)
        while len(self._grants) < min(place.rank, played):
            units = self._line[len(self._grants)]
            self._ahead += units
            self._grants.append(self._grant(units))
        if place.rank <= played:
            return self._grants[place.rank - 1]
        return self._find(own)[0] if played < PLAYED_MAX else self._beyond(place.units)

    def _beyond(self, units: int) -> int:
        """Return when this many units of the line have been granted, at a steady pace."""
        if self._at >= NEVER or self._lasts is None:
            return NEVER
        step = 0 if self._pacing is None else self._pacing.interval + self._jitter
        more = units - self._ahead
        return self._at + max(more * step, more * self._lasts // self._limit)

    def _find(self, units: int) -> tuple[int, int, int, int]:
        """Return when this many units are free and may be granted.

        Also the units free then, and the numbers of ends and later ends that have passed.
        """
        at, free, end, later = self._at, self._free, self._next_end, self._next_later
        laters = self._later
        while free < units:
            first = self._end(end)
            if first is not None and (later == len(laters) or first <= laters[later]):
                time, freed = first
                end += 1
            elif later < len(laters):
                time, freed = laters[later]
                later += 1
            else:
                return NEVER, free, end, later
            free += freed
            if time > at:
                at = time
        return max(at, self._opens), free, end, later

    def _end(self, n: int) -> End | None:
        """Return the n-th end of present leases and cooldowns; None if there are fewer."""
        while len(self._ends) <= n:
            one = next(self._coming, None)
            if one is None:
                return None
            self._ends.append(one)
        return self._ends[n]

    def _grant(self, units: int) -> int:
        if units > self._limit:
            return NEVER  # passed over while the limit is below
        at, free, self._next_end, self._next_later = self._find(units)
        self._at, self._free = at, free - units
        # A ticket that waits for another pool keeps its units set aside; others see what is left.
        granted = max(at, self._floors.get(len(self._grants), at))
        end = NEVER if self._lasts is None or granted >= NEVER else granted + self._lasts
        insort(self._later, (end, units), lo=self._next_later)
        if self._pacing is not None:
            self._paid = pacing.charged(self._pacing, self._paid, at, units, self._jitter)
            self._opens = pacing.opening(self._pacing, self._paid)
        return granted


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
        units = units_in_line(ticket)[pool]
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
        if waiter.lease is not None and _is_gang(waiter.lease):
            gangs.append((len(line), waiter.lease))
        line.append(waiter.units)
        last = place
    return Queue(places, last, tuple(line), tuple(gangs))


def _is_gang(ticket: Lease) -> bool:
    """Does a ticket wait for other pools in any case? One with alternatives may not have to."""
    return not ticket.alternatives and is_gang(ticket.needs)


def _is_passed_over(facts: Facts, moment: Moment, pool: Pool, waiter: Waiter, ahead: int) -> bool:
    """Is a ticket passed over? `ahead`: units granted to its owner before.

    A pause does not count here: it concerns all tickets, so all keep their places.
    """
    borrows = waiter.lease is None or waiter.lease.allocations is None
    bar = bar_of(facts, pool, waiter.owner, waiter.units, ahead, borrows)
    if bar not in (None, "paused"):
        return True
    if has_ended(moment, waiter.silent_from):
        return True
    lease = waiter.lease
    if lease is None:
        return False
    if lease.allocations is not None and lease.detail:
        return True
    return all(
        _is_barred(facts, pool.name, lease.owner, needs)
        for needs in asked(lease.needs, lease.alternatives)
        if any(need.pool == pool.name for need in needs)
    )


def _is_barred(facts: Facts, pool: str, owner: str, needs: Needs) -> bool:
    """Do labels, or other pools than this one, bar a ticket that needs this?"""
    if lacking_labels(facts, needs):
        return True
    return any(
        bar_of(facts, facts.pools[name], owner, units) is not None
        for name, units in units_by_pool(needs).items()
        if name in facts.pools and name != pool
    )
