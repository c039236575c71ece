"""Simulations of limits and pacing with known jobs."""

from itertools import pairwise

import pytest
from msgspec import structs

from moorage.core.admission.forecast.simulate import (
    Job,
    JobTimes,
    running,
    simulate_pool,
    starts_per_minute,
    summary,
    waiting,
)
from moorage.core.admission.model import Pacing, PoolSpec
from moorage.core.admission.pacing import pacing_default
from moorage.core.clock import MINUTE, SECOND

HOLD = 20 * MINUTE
POOL = PoolSpec(limit=50, ttl=MINUTE, ttl_max=60 * MINUTE, hold=HOLD)
CROWD = [Job(0)] * 250


@pytest.mark.parametrize(
    ("limit", "pacing", "starts", "last_start"),
    [
        (250, None, 250, 0),
        (50, None, 50, 80),
        (50, Pacing(12 * SECOND), 5, 90),
        (50, Pacing(24 * SECOND), 3, 100),
        (50, pacing_default(50, HOLD), 7, 98),
    ],
)
def test_a_crowd_starts_as_paced(
    limit: int, pacing: Pacing | None, starts: int, last_start: int
) -> None:
    """Limit and pacing determine starts per minute and the last start of 250 jobs at once."""
    stays = simulate_pool("install", structs.replace(POOL, limit=limit, pacing=pacing), CROWD)
    result = summary(stays)
    assert (result.starts_per_minute, round(result.last_start / MINUTE)) == (starts, last_start)
    assert (result.jobs, result.never, result.running) == (250, 0, min(250, limit))
    assert all(stay.ended == (stay.started or 0) + HOLD for stay in stays)


def test_a_paced_pool_does_not_crawl_when_idle() -> None:
    """Jobs that arrive one by one start at once: pacing only spreads crowds."""
    paced = structs.replace(POOL, pacing=pacing_default(50, HOLD))
    stays = simulate_pool("install", paced, [Job(n * MINUTE) for n in range(30)])
    assert all(stay.started == stay.arrived for stay in stays)
    assert (summary(stays).waiting, summary(stays).waited) == (0, (0, 0, 0))


def test_jobs_end_by_themselves_or_by_the_hold() -> None:
    """A job ends after its duration or after the pool's hold, whichever is shorter."""
    stays = simulate_pool("install", POOL, [Job(0, SECOND), Job(0, 2 * HOLD), Job(0)])
    assert [stay.ended for stay in stays] == [SECOND, HOLD, HOLD]


def test_order_and_quota_count() -> None:
    """A higher priority starts first, and an owner at its quota delays no other owner."""
    pool = structs.replace(POOL, limit=2, quota=1, hold=None)
    jobs = [
        Job(0, 10, owner="a"),
        Job(0, 10, owner="a"),
        Job(1, 10, owner="b"),
        Job(2, 10, owner="c"),
        Job(3, 10, owner="d", priority=1),
    ]
    assert [stay.started for stay in simulate_pool("p", pool, jobs)] == [0, 11, 1, 20, 10]


def test_a_job_above_the_limit_never_starts() -> None:
    """A job with more units than the limit is counted as never started, and delays no other."""
    pool = structs.replace(POOL, limit=2)
    stays = simulate_pool("p", pool, [Job(0, 5, units=3), Job(0, 5, units=2)])
    assert stays == [JobTimes(0, None, None, 3), JobTimes(0, 0, 5, 2)]
    assert (summary(stays).never, summary(stays).running) == (1, 2)


def test_jitter_depends_on_the_seed() -> None:
    """Equal seeds give equal jitter, different ones differ; jitter never shortens an interval."""
    pool = structs.replace(POOL, pacing=Pacing(10 * SECOND, jitter=5 * SECOND))
    runs = [simulate_pool("p", pool, CROWD[:20], seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    for stays in runs:
        starts = [stay.started or 0 for stay in stays]
        gaps = {after - before for before, after in pairwise(starts)}
        assert 10 * SECOND <= min(gaps) < max(gaps) <= 15 * SECOND


def test_a_job_that_never_ends_is_refused() -> None:
    """A job without duration and hold would run forever, so it is refused."""
    with pytest.raises(ValueError, match="never end"):
        simulate_pool("p", structs.replace(POOL, hold=None), [Job(0)])


def test_steps_over_time() -> None:
    """Waiting, running and starts per minute are step functions with one value per time."""
    stays = [
        JobTimes(0, 0, MINUTE, 2),
        JobTimes(0, MINUTE, 2 * MINUTE, 1),
        JobTimes(0, None, None, 1),
    ]
    assert running(stays) == [(0, 2), (MINUTE, 1), (2 * MINUTE, 0)]
    assert waiting(stays) == [(0, 1), (MINUTE, 0)]
    assert starts_per_minute(stays) == [(0, 2), (MINUTE, 1), (2 * MINUTE, 0)]
    assert summary([]).waited is None
