"""Simulates a pool with the decisions of the service, on an event-driven clock.

Jobs ask, run and release; none of them crash or are late. It helps to choose a limit and a pacing
before they are used. The jobs may be those of a pool's past, taken from its leases.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from msgspec import structs

from moorage.core.admission import expiry, leases, pools
from moorage.core.admission.admit import Order, TicketsNeeded, admit, order
from moorage.core.admission.bounds import EXEMPT
from moorage.core.admission.facts import Changes, Facts, Line
from moorage.core.admission.forecast import statistics
from moorage.core.admission.forecast.cloud import Cloud
from moorage.core.admission.forecast.statistics import Steps, greatest, percentiles, summed
from moorage.core.admission.model import Lease, Need, PoolSpec, Result
from moorage.core.admission.requests import NEVER, LeaseRequest, Proof
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import QUEUE_MAX_MAX
from moorage.core.restart import Restart
from moorage.core.service_time import Moment

TRIES_MAX = 100
"""How often a job that fails in a simulation is tried."""


@dataclass(frozen=True, slots=True)
class Job:
    """A future request. Times are microseconds from the start."""

    arrives: int
    duration: int | None = None
    """From its grant until it releases its units; None: until the pool's hold is over."""
    units: int = 1
    owner: str = "somebody"
    priority: int = 0
    outcome: Result | None = None
    """What it reports at its end, without a cloud; None: nothing."""
    again: bool = False
    """Another try of a job that has failed."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """The times of one job; None: that did not happen."""

    arrived: int
    started: int | None
    ended: int | None
    units: int
    outcome: Result | None = None
    again: bool = False
    """Another try of a job that has failed."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A simulation: the times of each try of each job, and the limit over time."""

    stays: list[JobTimes]
    limits: Steps


@dataclass(frozen=True, slots=True)
class Summary:
    """The effect of a limit and a pacing. Times are microseconds."""

    jobs: int
    never: int
    """Jobs that were never granted: they need more than the limit."""
    starts_per_minute: int
    """The most units that were granted within any 60 seconds, see `statistics`."""
    running: int
    """The most units occupied at once."""
    waiting: int
    """The most jobs waiting at once."""
    last_start: int
    last_end: int
    waited: tuple[int, int, int] | None
    """Median, 90th and 99th percentile of the time from request to grant."""
    ok: int = 0
    """Tries with this outcome, where outcomes are known; likewise the next two."""
    failed: int = 0
    throttled: int = 0


def simulate_pool(
    name: str, spec: PoolSpec, jobs: Sequence[Job], *, seed: int = 0
) -> list[JobTimes]:
    """Run jobs against an empty pool; return the times of each, in their order. See `rehearse`."""
    return rehearse(name, spec, jobs, seed=seed).stays


def rehearse(
    name: str, spec: PoolSpec, jobs: Sequence[Job], cloud: Cloud | None = None, *, seed: int = 0
) -> Rehearsal:
    """Run jobs against an empty pool, in the order of their requests.

    Args:
        name: of the pool; jitter depends on it.
        spec: of the pool; all settings apply except `queue_max` and its cohort.
        jobs: in any order. Jobs that arrive at the same time ask in the given order.
        cloud: decides which jobs fail; these ask again at once, up to `TRIES_MAX` times. None: each
            job reports its own outcome.
        seed: for jitter.

    Raises:
        Error: the spec is not valid.
        ValueError: a job would never end.
    """
    if spec.hold is None and any(job.duration is None for job in jobs):
        raise ValueError(
            "A job without a duration never ends in a pool without a hold: set a hold."
        )
    alone = {"cohort": None, "lending": None, "borrowing": 0}
    spec = structs.replace(spec, queue_max=QUEUE_MAX_MAX, **alone)
    return _Stage(name, spec, jobs, cloud, seed).play()


def summary(stays: Sequence[JobTimes]) -> Summary:
    """Summarize a rehearsal or a history."""
    starts = [stay.started for stay in stays if stay.started is not None]
    ends = [stay.ended for stay in stays if stay.ended is not None]
    outcomes = Counter(stay.outcome for stay in stays)
    return Summary(
        jobs=sum(not stay.again for stay in stays),
        never=len(stays) - len(starts),
        starts_per_minute=greatest(starts_per_minute(stays)),
        running=greatest(running(stays)),
        waiting=greatest(waiting(stays)),
        last_start=max(starts, default=0),
        last_end=max(ends, default=0),
        waited=percentiles(
            stay.started - stay.arrived for stay in stays if stay.started is not None
        ),
        ok=outcomes["ok"],
        failed=outcomes["failed"],
        throttled=outcomes["throttled"],
    )


def running(stays: Sequence[JobTimes]) -> Steps:
    """Return the occupied units over time."""
    steps = [(stay.started, stay.units) for stay in stays if stay.started is not None]
    steps += [(stay.ended, -stay.units) for stay in stays if stay.ended is not None]
    return summed(steps)


def waiting(stays: Sequence[JobTimes]) -> Steps:
    """Return the waiting jobs over time.

    A job granted at once never waits, nor does one that needs more than the limit: it is refused.
    """
    steps: Steps = []
    for stay in stays:
        if stay.started is not None and stay.started != stay.arrived:
            steps += [(stay.arrived, 1), (stay.started, -1)]
    return summed(steps)


def starts_per_minute(stays: Sequence[JobTimes]) -> Steps:
    """Return the units granted within the last 60 seconds over time."""
    return statistics.starts_per_minute(
        (stay.started, stay.units) for stay in stays if stay.started is not None
    )


class _Stage:
    """The rows of one pool, the coming events, and the times of each job."""

    def __init__(
        self, name: str, spec: PoolSpec, jobs: Sequence[Job], cloud: Cloud | None, seed: int
    ) -> None:
        self.name = name
        self.jobs = [*jobs]
        self.tries = [1] * len(jobs)
        self.cloud = cloud
        # Jitter depends on pool and arrival number, so the seed shifts the arrival numbers.
        self.arrivals = seed * 1_000_000
        _, self.pool = pools.put(Facts(), _moment(0), Instant(0), name, spec)
        self.leases: dict[LeaseId, Lease] = {}
        self.line: list[tuple[Order, LeaseId]] = []
        """(its order, ticket), sorted."""
        self.ends: list[tuple[int, LeaseId]] = []
        """When leases end, and when their jobs ask the cloud."""
        self.asks: set[LeaseId] = set()
        """Leases whose jobs have not asked the cloud yet."""
        self.throttled: set[LeaseId] = set()
        """Those that were throttled when they did."""
        self.held: dict[str, int] = {}
        self.stays = [JobTimes(job.arrives, None, None, job.units, again=job.again) for job in jobs]
        self.limits: Steps = [(0, self.pool.spec.limit or 0)]

    def play(self) -> Rehearsal:
        """Process all events in order of time."""
        comers = sorted(range(len(self.jobs)), key=lambda n: (-self.jobs[n].arrives, -n))
        at = self._next(comers)
        while at is not None:
            coming = []
            while comers and self.jobs[comers[-1]].arrives <= at:
                coming.append(comers.pop())
            over = self._over(at)
            if coming or over or at == self.pool.wake_at:
                self._batch(at, coming, over)
            at = self._next(comers)
        return Rehearsal(self.stays, self.limits)

    def _over(self, at: int) -> dict[LeaseId, Result | None]:
        """Return the leases whose jobs end now, and what these report."""
        over: dict[LeaseId, Result | None] = {}
        while self.ends and self.ends[0][0] <= at:
            _, key = heappop(self.ends)
            n, cloud = int(self.leases[key].key), self.cloud
            if cloud is None:
                over[key] = self.jobs[n].outcome
            elif key in self.asks:
                self.asks.discard(key)
                if cloud.throttles(n, at, self.pool.occupied):
                    self.throttled.add(key)
            elif key in self.throttled:
                over[key] = "throttled"
            else:
                over[key] = "failed" if cloud.fails(n) else "ok"
        return over

    def _again(self, at: int, n: int) -> int | None:
        """Return the number of another try of a job that has failed; None: it gives up."""
        if self.cloud is None or self.tries[n] >= TRIES_MAX:
            return None
        job = replace(self.jobs[n], arrives=at, again=True)
        self.jobs.append(job)
        self.tries.append(self.tries[n] + 1)
        self.stays.append(JobTimes(at, None, None, job.units, again=True))
        return len(self.jobs) - 1

    def _next(self, comers: list[int]) -> int | None:
        known = [self.pool.wake_at, self.ends[0][0] if self.ends else None]
        known.append(self.jobs[comers[-1]].arrives if comers else None)
        return min((at for at in known if at is not None), default=None)

    def _batch(self, at: int, coming: list[int], over: Mapping[LeaseId, Result | None]) -> None:
        """Decide as the service does: one request after the other, then grant once."""
        moment, wall = _moment(at), Instant(at)
        facts = self._facts([*over])
        changes = Changes()

        def take(made: Changes) -> None:
            facts.apply(made)
            changes.update(made)

        for key, result in over.items():
            n = int(facts.leases[key].key)
            self.stays[n] = replace(self.stays[n], outcome=result)
            if result is not None:
                cause = "cloud" if result == "throttled" else ""
                take(leases.outcome(facts, moment, key, Proof(), result, "", cause=cause)[0])
            if result not in (None, "ok") and (again := self._again(at, n)) is not None:
                coming.append(again)
        take(expiry.sweep(facts, moment, wall, facts.due)[0])
        for key in over:
            take(leases.release(facts, moment, wall, key, Proof())[0])
        for n in coming:
            try:
                take(leases.acquire(facts, moment, self._ask(n))[0])
            except Error as refusal:
                if refusal.code is not Code.UNITS_ABOVE_LIMIT:
                    raise
        while True:
            try:
                take(admit(facts, moment, wall))
                break
            except Restart as short:
                assert isinstance(short.needs, TicketsNeeded)  # there is no ledger
                self._load_more(facts, short.needs.lines[self.name])
        self.arrivals = facts.arrivals
        self.pool = facts.pools[self.name]
        limit = self.pool.spec.limit or 0
        if limit != self.limits[-1][1]:
            self.limits.append((at, limit))
        for lease in changes.leases.values():
            assert lease is not None
            self._keep(at, lease)

    def _facts(self, over: list[LeaseId]) -> Facts:
        return Facts(
            arrivals=self.arrivals,
            pools={self.name: self.pool},
            leases={key: self.leases[key] for key in over},
            slots={self.name: {}},
            held={(self.name, owner): units for owner, units in self.held.items()},
            due=list(over),
        )

    def _load_more(self, facts: Facts, count: int) -> None:
        line = facts.lines.setdefault(self.name, Line())
        for _, key in self.line[len(line.tickets) : count]:
            line.tickets.append(key)
            facts.leases[key] = self.leases[key]
        line.end = self.line[len(line.tickets) - 1][0] if line.tickets else None
        line.whole = count >= len(self.line)

    def _ask(self, n: int) -> LeaseRequest:
        job = self.jobs[n]
        return LeaseRequest(
            id=LeaseId(str(n)),
            owner=job.owner,
            key=str(n),
            digest="",
            needs=(Need(self.name, job.units),),
            priority=job.priority,
            ttl=NEVER,
            roles=frozenset({EXEMPT}),  # a rehearsal covers only limits and pacings
        )

    def _keep(self, at: int, lease: Lease) -> None:
        """Store a row, and update what depends on it."""
        before = self.leases.pop(lease.id, None)
        place = (order(before or lease), lease.id)
        if before is not None and before.state == "waiting":
            del self.line[bisect_left(self.line, place)]
        n = int(lease.key)
        job, stay = self.jobs[n], self.stays[n]
        if lease.state == "ended":
            self.held[lease.owner] -= job.units
            self.stays[n] = replace(stay, ended=at)
            return
        self.leases[lease.id] = lease
        if lease.state == "waiting":
            insort(self.line, place)
            return
        self.held[lease.owner] = self.held.get(lease.owner, 0) + job.units
        self.stays[n] = replace(stay, started=at)
        ends = [] if lease.hold_until is None else [int(lease.hold_until)]
        if job.duration is not None:
            ends.append(at + job.duration)
        heappush(self.ends, (min(ends), lease.id))
        if self.cloud is not None:
            self.asks.add(lease.id)
            asks = at + self.cloud.asked_after(n, min(ends) - at)
            heappush(self.ends, (asks, lease.id))


def _moment(at: int) -> Moment:
    return Moment(Instant(at), Instant(at))


class PastLease(NamedTuple):
    """The known times of a lease or ticket of a pool; None: the event has not happened yet."""

    asked_at: Instant
    granted_at: Instant | None
    ended_at: Instant | None
    units: int
    owner: str
    rank: int
    """The negated priority."""
    outcome: Result | None = None
    """What its holder has reported; None: nothing, or it is not known here."""


class Bucket(NamedTuple):
    """A part of the time: the counts in it."""

    begins: Instant
    occupied_low: int
    occupied_high: int
    waiting: int
    """The most tickets that waited at once."""
    granted: int
    """Units that were granted."""


def buckets_of(
    past: Iterable[PastLease], since: Instant, until: Instant, count: int
) -> list[Bucket]:
    """Divide a time into equal parts, so that peaks within a part stay visible."""
    past = list(past)
    bounds = [Instant(since + (until - since) * n // count) for n in range(count + 1)]
    occupied = _ranges(_occupied(past), bounds)
    waiting = _ranges(_waiting(past), bounds)
    granted = _ranges(summed(_grants(past)), bounds, begin=0)
    found = []
    before = granted[0][0]
    for number, begins in enumerate(bounds[:-1]):
        after = granted[number][1]
        found.append(Bucket(begins, *occupied[number], waiting[number][1], max(0, after - before)))
        before = max(before, after)
    return found


def _occupied(past: Iterable[PastLease]) -> Steps:
    steps: Steps = []
    for one in past:
        if one.granted_at is not None:
            steps.append((one.granted_at, one.units))
            if one.ended_at is not None:
                steps.append((one.ended_at, -one.units))
    return summed(steps)


def _waiting(past: Iterable[PastLease]) -> Steps:
    steps: Steps = []
    for one in past:
        left = one.granted_at if one.granted_at is not None else one.ended_at
        if left == one.asked_at:
            continue  # granted at once
        steps.append((one.asked_at, 1))
        if left is not None:
            steps.append((left, -1))
    return summed(steps)


def _grants(past: Iterable[PastLease]) -> Steps:
    return [(one.granted_at, one.units) for one in past if one.granted_at is not None]


def _ranges(steps: Steps, bounds: Sequence[Instant], begin: int = 0) -> list[tuple[int, int]]:
    """Return the least and the greatest count within each part."""
    found, count, place = [], begin, 0
    while place < len(steps) and steps[place][0] <= bounds[0]:
        count = steps[place][1]
        place += 1
    for _, ends in pairwise(bounds):
        low = high = count
        while place < len(steps) and steps[place][0] <= ends:
            count = steps[place][1]
            low, high = min(low, count), max(high, count)
            place += 1
        found.append((low, high))
    return found


def jobs_of(past: Iterable[PastLease]) -> tuple[list[Job], list[JobTimes]]:
    """Return the jobs whose leases have ended, and their actual times, in the order of requests.

    Tickets that were never granted are left out, because their duration is unknown.
    """
    ended = sorted(
        (one for one in past if one.granted_at is not None and one.ended_at is not None),
        key=lambda one: one.asked_at,
    )
    jobs, stays = [], []
    for one in ended:
        assert one.granted_at is not None
        assert one.ended_at is not None
        first = ended[0].asked_at
        asked, granted, over = one.asked_at - first, one.granted_at - first, one.ended_at - first
        lasts = max(1, over - granted)
        jobs.append(Job(asked, lasts, one.units, one.owner, -one.rank, one.outcome))
        stays.append(JobTimes(asked, granted, over, one.units, one.outcome))
    return jobs, stays
