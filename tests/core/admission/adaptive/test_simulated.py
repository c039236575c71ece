"""The rule against clouds with a hidden capacity: throughput, failures, and oscillation.

The pool does not know the capacity, which changes. Fixed limits of all sizes are the comparison:
the best one for its throughput, and the naive one, which is too high, for its failures. A control
that follows raw failures, as congestion control does, is seen to oscillate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import cos, pi

import pytest
from msgspec import structs

from moorage.core.admission.adaptive import rule
from moorage.core.admission.forecast.cloud import Cloud
from moorage.core.admission.forecast.simulate import Job, Rehearsal, rehearse, summary
from moorage.core.admission.model import (
    Lease,
    Pool,
    PoolSpec,
    Result,
)
from moorage.core.admission.pacing import pacing_default
from moorage.core.clock import HOUR, MINUTE, SECOND, Instant
from moorage.core.pool_values import Adaptive

HOLD = 20 * MINUTE
HIDDEN = 50
NAIVE = 100
ACTING = Adaptive(5, 200, "act")


def diurnal() -> tuple[tuple[int, int], ...]:
    """Return a capacity that falls from 60 to 30 and rises again within a day."""
    hours = range(48)
    return tuple((n * HOUR, round(45 + 15 * cos(2 * pi * n / 24))) for n in hours)


CLOUDS: dict[str, tuple[tuple[int, int], ...]] = {
    "constant": ((0, HIDDEN),),
    "a quota is raised": ((0, HIDDEN), (4 * HOUR, 2 * HIDDEN)),
    "an incident": ((0, HIDDEN), (4 * HOUR, 35), (8 * HOUR, HIDDEN)),
    "diurnal": diurnal(),
}


@dataclass(frozen=True)
class Played:
    """What became of the jobs with one limit."""

    throughput: float
    """Jobs that were done per hour."""
    bad: int
    """Tries that have failed, or were throttled."""
    limits: list[tuple[int, int]]
    tries: int

    @property
    def travel(self) -> float:
        """How far the limit moves in 100 tries, as a part of its mean: a measure of oscillation."""
        way = sum(abs(after - before) for (_, before), (_, after) in pairwise(self.limits))
        mean = sum(limit for _, limit in self.limits) / len(self.limits)
        return 100 * way / mean / self.tries


def judged(found: Rehearsal) -> Played:
    """Return the figures of a simulation."""
    summed = summary(found.stays)
    hours = summed.last_end / HOUR
    bad = summed.failed + summed.throttled
    return Played(summed.ok / hours, bad, found.limits, summed.ok + bad)


def spec(limit: int, adaptive: Adaptive | None) -> PoolSpec:
    """Return a pool whose jobs take 20 minutes."""
    return PoolSpec(
        limit=limit,
        ttl=60 * SECOND,
        ttl_max=3_600 * SECOND,
        hold=HOLD,
        pacing=pacing_default(limit, HOLD),
        adaptive=adaptive,
    )


def rush(count: int) -> list[Job]:
    """Return jobs that ask at once: all of them wait."""
    return [Job(0, HOLD) for _ in range(count)]


@cache
def played(cloud: str, limit: int, adaptive: Adaptive | None = None, jobs: int = 2_000) -> Played:
    """Simulate one limit against one of the clouds."""
    return judged(rehearse("p", spec(limit, adaptive), rush(jobs), Cloud(CLOUDS[cloud])))


@pytest.mark.parametrize("cloud", CLOUDS)
def test_it_is_nearly_as_fast_as_the_best_limit_with_few_failures(cloud: str) -> None:
    """Within 25 % of the best fixed throughput, with at most a third of the naive failures."""
    fixed = [played(cloud, limit) for limit in (30, HIDDEN, NAIVE)]
    found = played(cloud, HIDDEN, ACTING)
    assert found.throughput >= 0.75 * max(one.throughput for one in fixed)
    assert found.bad <= played(cloud, NAIVE).bad / 3


@pytest.mark.parametrize("limit", [20, 120])
def test_a_wrong_limit_is_corrected(limit: int) -> None:
    """From far below or above, it comes into the neighbourhood of the capacity and stays there."""
    found = played("constant", limit, ACTING)
    late = [units for at, units in found.limits if at > 10 * HOUR]
    assert late
    assert all(0.6 * HIDDEN <= units <= 1.3 * HIDDEN for units in late)


def test_a_fixed_limit_is_wrong_after_a_change() -> None:
    """The control: what was best before fails in an incident, or misses what was raised."""
    incident = played("an incident", HIDDEN)
    assert played("an incident", HIDDEN, ACTING).bad <= incident.bad / 2
    raised = played("a quota is raised", HIDDEN)
    assert played("a quota is raised", HIDDEN, ACTING).throughput >= 1.1 * raised.throughput


Rule = Callable[[Pool, Lease, Instant, Result, str], Pool]


def aimd() -> Rule:
    """Return the control: each good job adds a part of a unit, each failure cuts at once."""
    exact: dict[str, float] = {}

    def reported(pool: Pool, lease: Lease, at: Instant, result: Result, cause: str) -> Pool:
        limit = exact.get(pool.name, float(pool.spec.limit or 0))
        limit = limit + 1 / limit if result == "ok" else limit * 0.7
        exact[pool.name] = limit = min(max(limit, ACTING.floor), ACTING.ceiling)
        return structs.replace(pool, spec=structs.replace(pool.spec, limit=int(limit)))

    return reported


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Return what the control makes of the constant cloud."""
    with monkeypatch.context() as patched:
        patched.setattr(rule, "reported", aimd())
        return judged(rehearse("p", spec(HIDDEN, ACTING), rush(2_000), Cloud(CLOUDS["constant"])))


def test_following_raw_failures_oscillates(control: Played) -> None:
    """The control moves thrice as far, is slower, and is moved by jobs that would always fail."""
    found = played("constant", HIDDEN, ACTING)
    assert control.travel >= 3 * found.travel
    assert control.throughput < 0.75 * played("constant", HIDDEN).throughput


def test_failures_of_their_own_cut_nothing() -> None:
    """A cloud with room for all: one of a hundred jobs fails, and the limit only rises."""
    found = rehearse("p", spec(20, Adaptive(5, 60, "act")), rush(1_500), Cloud(((0, 1_000),)))
    units = [limit for _, limit in found.limits]
    assert units == sorted(units)
    assert units[-1] == 60


def test_the_same_seed_gives_the_same_play() -> None:
    """Simulations can be repeated; another seed is another play."""
    plays = [
        rehearse("p", spec(20, ACTING), rush(100), Cloud(((0, 10),), seed=seed)).stays
        for seed in (1, 1, 2)
    ]
    assert plays[0] == plays[1] != plays[2]


def test_a_job_that_fails_is_tried_again() -> None:
    """Every job is done in the end; each failed try is one more stay."""
    stays = rehearse("p", spec(20, None), rush(100), Cloud(((0, 10),))).stays
    summed = summary(stays)
    assert (summed.jobs, summed.ok) == (100, 100)
    assert summed.throttled > 10
    assert len(stays) == 100 + summed.throttled + summed.failed
    assert [stay.again for stay in stays].count(True) == len(stays) - 100
