"""The past of a pool, from its leases: what was occupied, who waited, and the jobs to replay."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from moorage.core.admission.forecast.simulate import Job, JobTimes
from moorage.core.admission.forecast.statistics import Steps, summed
from moorage.core.clock import Instant


class PastLease(NamedTuple):
    """What is known of a lease or ticket of a pool; None: that did not happen yet."""

    asked_at: Instant
    granted_at: Instant | None
    ended_at: Instant | None
    units: int
    owner: str
    rank: int
    """The negated priority."""


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
        jobs.append(Job(asked, max(1, over - granted), one.units, one.owner, -one.rank))
        stays.append(JobTimes(asked, granted, over, one.units))
    return jobs, stays
