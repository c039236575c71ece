"""A pool's report and a simulation of the same jobs print the same figures.

Jobs run on a real service, which records them, and are simulated with the same settings. Both must
agree to the microsecond.
"""

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from moorage.cli.support.jobs import history
from moorage.core.admission.forecast.simulate import (
    Job,
    JobTimes,
    simulate_pool,
    starts_per_minute,
    summary,
)
from moorage.core.admission.forecast.statistics import percentiles
from moorage.core.admission.model import Need, Pacing, PoolSpec
from moorage.core.admission.pacing import pacing_default
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import DAY, HOUR, SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.faces.v1.admission import leases, pools
from moorage.service.admission.lease_cases import LeaseOutcome, LeaseRelease
from tests.service.pools import pool_put, with_manual_clock
from tests.service.running import TESTER, Running

PLAIN = PoolSpec(limit=4, ttl=DAY, ttl_max=DAY)
HOLD = 90 * SECOND
SPECS = {
    "a limit": PLAIN,
    "a hold and its pacing": structs.replace(PLAIN, hold=HOLD, pacing=pacing_default(4, HOLD)),
    "bursts and jitter": structs.replace(PLAIN, pacing=Pacing(5 * SECOND, 4, 3 * SECOND)),
    "cooldown and quota": structs.replace(PLAIN, cooldown=7 * SECOND, quota=3),
}


def random_jobs(seed: int) -> list[Job]:
    """Return jobs of some owners, in bursts and one by one; some want more than the limit."""
    dice = Random(seed)
    found, at = [], 0
    for _ in range(40):
        at += dice.choice((1, 1, 20 * SECOND)) + dice.randrange(SECOND)
        found.append(
            Job(
                arrives=at,
                duration=dice.randint(5 * SECOND, 120 * SECOND),
                units=dice.choice((1, 1, 1, 2, 3, 5)),
                owner=dice.choice(("x", "y", "z")),
                priority=dice.choice((0, 0, 1)),
            )
        )
    return found


@dataclass
class Recorded:
    """The most occupied units and waiting jobs that were seen while the jobs ran."""

    running: int = 0
    waiting: int = 0


class Recording:
    """Runs jobs on the pool `p` of a service: each asks, occupies its units and releases them."""

    def __init__(self, one: Running, jobs: list[Job]) -> None:
        self._admission = one.service.admission
        self._clock = one.clock
        self._began = one.clock.at
        self._jobs = jobs
        self._coming = sorted(range(len(jobs)), key=lambda n: -jobs[n].arrives)
        self._ends: list[tuple[int, int, LeaseId]] = []
        self._live: set[LeaseId] = set()
        self.seen = Recorded()

    async def play(self) -> Recorded:
        """Process all events in order of time, as a server does."""
        while (at := await self._next()) is not None:
            self._clock.at = at
            await self._admission.sweeper.sweep()
            while self._ends and self._ends[0][0] <= at:
                _, n, lease = heappop(self._ends)
                await self._admission.change(LeaseRelease(lease, Proof(self._jobs[n].owner)))
            while self._coming and self._began + self._jobs[self._coming[-1]].arrives <= at:
                await self._ask(self._coming.pop())
            await self._look()
        return self.seen

    async def _next(self) -> int | None:
        """Return the time of the next event; None if there is none."""
        granted, _, _ = await self._admission.queries.leases(None, 1_000, "p", "granted")
        times = [one.lease.hold_until for one in granted]
        times.append((await self._admission.queries.pool("p")).pool.wake_at)
        soonest = [at for at in times if at is not None]
        soonest += [self._ends[0][0]] if self._ends else []
        coming = self._coming
        soonest += [self._began + self._jobs[coming[-1]].arrives] if coming else []
        return min(soonest, default=None)

    async def _ask(self, n: int) -> None:
        job = self._jobs[n]
        wanted = LeaseRequest(
            owner=job.owner,
            key=str(n),
            needs=(Need("p", job.units),),
            priority=job.priority,
            patience=HOUR,
        )
        try:
            await self._admission.acquire(wanted, TESTER)
        except Error as refusal:
            assert refusal.code is Code.UNITS_ABOVE_LIMIT

    async def _look(self) -> None:
        """Record what is occupied and when new leases will be released; report their outcomes."""
        pool = (await self._admission.queries.pool("p")).pool
        self.seen.running = max(self.seen.running, pool.occupied)
        self.seen.waiting = max(self.seen.waiting, pool.waiting)
        granted, _, _ = await self._admission.queries.leases(None, 1_000, "p", "granted")
        for lease in (view.lease for view in granted if view.lease.id not in self._live):
            n, since = int(lease.key), lease.granted_at
            assert since is not None
            self._live.add(lease.id)
            heappush(self._ends, (since + (self._jobs[n].duration or 0), n, lease.id))
            await self._admission.change(LeaseOutcome(lease.id, Proof(lease.owner), "ok", ""))


def seconds(durations: Any) -> list[float]:
    """Convert durations to seconds as the report does."""
    return [one / SECOND for one in durations]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SPECS)
def test_a_report_and_a_simulation_agree(tmp_path: Path, name: str, seed: int) -> None:
    """Starts per minute, waits, durations and units in use: recorded, simulated and replayed."""
    spec, jobs = SPECS[name], random_jobs(seed)
    stays = simulate_pool("p", spec, jobs)
    started = [stay for stay in stays if stay.started is not None]
    told = summary(stays)
    rates = dict(starts_per_minute(stays))

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec)
        seen = await Recording(one, jobs).play()
        report = pools.report_shown(await admission.queries.report("p"))
        assert report.leases == told.jobs - told.never == len(started)
        assert told.waited is not None
        assert report.waited == seconds(told.waited)
        assert report.held == seconds(percentiles(map(duration_of, started)) or ())
        assert (seen.running, seen.waiting) == (told.running, told.waiting)
        assert {line.limit for line in report.outcomes} == {spec.limit}
        lines = {line.starts_per_minute: line.ok for line in report.outcomes}
        assert lines == Counter(rates[stay.started or 0] for stay in started)
        assert max(rate or 0 for rate in lines) == told.starts_per_minute
        ended, _, _ = await admission.queries.leases(None, 1_000, "p", "ended")
        _, past = history("p", [leases.lease_shown(view, mine=False) for view in ended])
        first = min(stay.arrived for stay in started)
        assert past == [moved(stay, -first) for stay in sorted(started, key=arrival)]
        again = summary(past)
        assert (again.waited, again.starts_per_minute) == (told.waited, told.starts_per_minute)

    with_manual_clock(tmp_path, scenario)
    assert told.never > 0


def duration_of(stay: JobTimes) -> int:
    """Return how long a job occupied its units."""
    return (stay.ended or 0) - (stay.started or 0)


def arrival(stay: JobTimes) -> int:
    """Return when a job arrived."""
    return stay.arrived


def moved(stay: JobTimes, by: int) -> JobTimes:
    """Return a job's times, shifted by `by`, with the outcome that each recorded job reports."""
    started, ended = (stay.started or 0) + by, (stay.ended or 0) + by
    return JobTimes(stay.arrived + by, started, ended, stay.units, "ok")
