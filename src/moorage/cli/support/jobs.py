"""The jobs of a simulation: generated, read from a trace, or taken from a pool's history."""

import csv
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from random import Random

from moorage.cli.support.output import FAILED, USAGE, Failure
from moorage.core.admission.forecast.simulate import Job, JobTimes, PastLease, jobs_of
from moorage.core.clock import SECOND, Instant
from moorage.service.values import instant_of
from moorage.wire.admission import Lease
from moorage.wire.durations import seconds_of

COLUMNS = "arrive_seconds,hold_or_duration_seconds[,units[,owner[,priority]]]"


def crowd(count: int, spread: float, seed: int) -> list[Job]:
    """Return jobs that arrive at random within `spread` seconds; each lasts for its hold."""
    dice = Random(seed)
    return [Job(round(dice.uniform(0, spread) * SECOND)) for _ in range(count)]


def capacity(text: str) -> list[tuple[int, int]]:
    """Parse UNITS[@TIME],... as the capacity of a cloud over time. Raises ValueError."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        units, at, since = part.strip().partition("@")
        begins = round(seconds_of(since) * SECOND) if at else 0
        if not units.isdecimal() or (found and begins <= found[-1][0]):
            raise ValueError(
                f"{part!r} is not UNITS@TIME, later than what is before it (for example 50,25@2h)"
            )
        found.append((begins, int(units)))
    return found


def trace(path: str) -> list[Job]:
    """Return the jobs of a CSV file; a header line is skipped. Raises Failure: 2."""
    try:
        with Path(path).open(newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise Failure(USAGE, f"cannot read {path}: {reason}") from None
    jobs = []
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and not _is_number(line[0])):
            continue
        try:
            jobs.append(_job(line))
        except ValueError as error:
            raise Failure(USAGE, f"{path}:{number}: {error}; a line is {COLUMNS}") from None
    if not jobs:
        raise Failure(USAGE, f"{path} has no jobs; a line is {COLUMNS}")
    return jobs


def history(pool: str, leases: Iterable[Lease]) -> tuple[list[Job], list[JobTimes]]:
    """Return the past jobs of a pool and their actual times, in the order of their requests.

    Tickets that were never granted are left out, because their duration is unknown.
    Raises Failure: 1, there are no jobs.
    """
    past = [
        PastLease(
            asked_at=instant_of("A time", lease.asked_at),
            granted_at=_instant_or_none(lease.granted_at),
            ended_at=_instant_or_none(lease.ended_at),
            units=sum(need.units for need in lease.needs if need.pool == pool),
            owner=lease.owner,
            rank=-lease.priority,
            outcome=lease.outcome,
        )
        for lease in leases
    ]
    jobs, stays = jobs_of(past)
    if not jobs:
        raise Failure(
            FAILED, f"no lease of pool '{pool}' has ended yet, so there is nothing to replay"
        )
    return jobs, stays


def _instant_or_none(at: datetime | None) -> Instant | None:
    return None if at is None else instant_of("A time", at)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _job(line: list[str]) -> Job:
    arrives, duration, *rest = [cell.strip() for cell in line] + [""] * (2 - len(line))
    units, owner, priority, *more = rest + [""] * (3 - len(rest))
    if any(more):
        raise ValueError(f"{len(line)} columns are too many")
    job = Job(
        arrives=round(float(arrives) * SECOND),
        duration=round(float(duration) * SECOND) if duration else None,
        units=int(units or 1),
        owner=owner or "somebody",
        priority=int(priority or 0),
    )
    if job.arrives < 0 or job.units < 1 or (job.duration is not None and job.duration <= 0):
        raise ValueError("times and units must be above 0")
    return job
