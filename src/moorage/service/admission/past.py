"""The past of pools: counts over time, and rehearsals of other limits on the same jobs."""

import asyncio
from collections.abc import Sequence

from msgspec import Struct, structs

from moorage.core.admission.forecast.simulate import (
    Bucket,
    PastLease,
    Summary,
    buckets_of,
    jobs_of,
    simulate_pool,
    summary,
)
from moorage.core.admission.model import Pacing, PoolSpec
from moorage.core.admission.pools import not_found
from moorage.core.admission.units import figures_of
from moorage.core.clock import Instant
from moorage.core.limits import REPORT_LEASES_MAX
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.admission.ended import EndedLeases
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.caller_turns import CallerTurns
from moorage.service.feed.watch import Cursor
from moorage.store import service_clock
from moorage.store.admission.contents import PastSeen, past_load
from moorage.store.api import Engine

REHEARSED_MAX = 2_000
"""The newest jobs that a rehearsal replays: each takes about 0.2 ms for each scene.

So the two scenes of the dashboard take less than a second.
"""

REPORTS_OF_ONE_MAX = 64
REPORTS_WAITING_MAX = 512
"""Reports and histories of one caller, and of all, that run or wait. They share a thread with
chores, so only one runs at a time."""

REHEARSALS_OF_ONE_MAX = 2
REHEARSALS_WAITING_MAX = 8
"""Rehearsals of one caller, and of all, that run or wait for their turn."""


def report_turns() -> CallerTurns:
    """Return the turns that reports and histories share."""
    return CallerTurns("reports", REPORTS_OF_ONE_MAX, REPORTS_WAITING_MAX)


class HistoryView(Struct, frozen=True):
    """A pool's counts over time, as of one revision. Times are by the wall clock."""

    as_of: Cursor
    units: int
    asked: int
    covered: int
    """How far back they are complete, in microseconds."""
    cut: bool
    step: int
    """Microseconds of each bucket."""
    buckets: list[Bucket]


class Scene(Struct, frozen=True):
    """A limit and a pacing to rehearse."""

    limit: int
    pacing: Pacing | None


class RehearsalView(Struct, frozen=True):
    """The past, and the outcome of the same jobs in each scene."""

    as_of: Cursor
    covered: int
    cut: bool
    actual: Summary
    scenes: list[Summary]


class PoolPast:
    """Answers queries about the past. Raises `Error`: POOL_NOT_FOUND, UNAVAILABLE."""

    def __init__(
        self, engine: Engine, service_clock: ServiceClock, ended: EndedLeases, turns: CallerTurns
    ) -> None:
        self._turns = turns
        self._engine = engine
        self._service_clock = service_clock
        self._ended = ended
        self._rehearsals = CallerTurns("rehearsals", REHEARSALS_OF_ONE_MAX, REHEARSALS_WAITING_MAX)

    async def history(self, pool: str, since: int, points: int, *, who: str = "") -> HistoryView:
        """Return a pool's counts over the last `since` microseconds, in `points` equal parts.

        `who`: the caller, who waits for its own requests. Raises OVERLOADED: too many wait.
        """
        async with self._turns.of(who):
            return await self._history(pool, since, points)

    async def _history(self, pool: str, since: int, points: int) -> HistoryView:
        seen, when = await self._seen(pool, since, REPORT_LEASES_MAX)
        at = when.moment.at
        covered = self._covered(seen, when, since)
        back = when.wall - at
        begins = Instant(at - covered)
        buckets = await asyncio.to_thread(buckets_of, seen.past, begins, at, points)
        return HistoryView(
            as_of=Cursor(seen.epoch, seen.revision),
            units=figures_of(seen.pool.pool, seen.pool.slots, at).units,
            asked=since,
            covered=covered,
            cut=seen.cut,
            step=covered // points,
            buckets=[one._replace(begins=Instant(one.begins + back)) for one in buckets],
        )

    async def rehearse(
        self, pool: str, since: int, scenes: Sequence[Scene], *, who: str = ""
    ) -> RehearsalView:
        """Replay a pool's jobs of the last `since` microseconds with other limits and pacings.

        `who`: the caller. Raises OVERLOADED: too many rehearsals wait.
        """
        async with self._rehearsals.of(who):
            async with self._turns.of(who):
                seen, when = await self._seen(pool, since, REHEARSED_MAX)
            actual, found = await asyncio.to_thread(
                _rehearsed, pool, seen.pool.pool.spec, seen.past, scenes
            )
        return RehearsalView(
            as_of=Cursor(seen.epoch, seen.revision),
            covered=self._covered(seen, when, since),
            cut=seen.cut,
            actual=actual,
            scenes=found,
        )

    async def _seen(self, pool: str, since: int, ends_max: int) -> tuple[PastSeen, When]:
        with errors.translated():
            before = self._service_clock.estimate(
                await self._engine.read(service_clock.timeline_load())
            )
            first = Instant(before.moment.at - since)
            seen = await self._engine.read_aside(past_load(pool, first, ends_max), slow=True)
        if seen is None:
            raise not_found(pool)
        return seen, self._service_clock.estimate(seen.timeline)

    def _covered(self, seen: PastSeen, when: When, since: int) -> int:
        """Return how far back all leases are known; before its creation a pool had none."""
        at = when.moment.at
        known = min(since, at - self._ended.since(at), when.wall - seen.pool.pool.created_at)
        if seen.cut:
            oldest = min(
                (one.ended_at for one in seen.past if one.ended_at is not None), default=at
            )
            known = min(known, at - oldest)
        return max(1, known)


def _rehearsed(
    pool: str, spec: PoolSpec, past: Sequence[PastLease], scenes: Sequence[Scene]
) -> tuple[Summary, list[Summary]]:
    jobs, stays = jobs_of(past)
    plain = structs.replace(
        spec, per_member=None, member_group=None, native_slots=False, adaptive=None
    )
    found = []
    for scene in scenes:
        wanted = structs.replace(plain, limit=scene.limit, pacing=scene.pacing)
        found.append(summary(simulate_pool(pool, wanted, jobs)))
    return summary(stays), found
