"""The past of pools: counts over time, and rehearsals of other limits. Durations are in seconds."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from moorage.wire.admission import Pacing
from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAsked:
    """How far back, in seconds, and in how many equal parts, at most 1000."""

    since: float = 86_400.0
    points: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """A part of the time from `at` on: the least and the most units that leases had in it.

    `waiting` is the most tickets that waited at once, `granted` how many units were granted.
    """

    at: datetime
    occupied_low: int
    occupied_high: int
    waiting: int
    granted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHistory:
    """A pool's leases and tickets over time, as of one revision of the ledger.

    `units` is the number of units now. Each point stands for `step_seconds`. They cover
    `covered_seconds`: less than `asked_seconds` if older leases are no longer kept, or if `cut`:
    there were more than 50000 ends, and these are the newest.
    """

    as_of: str
    pool: str
    units: int
    asked_seconds: float
    covered_seconds: float
    cut: bool
    step_seconds: float
    points: list[HistoryPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneWanted:
    """A limit and a pacing to rehearse. `limit` null: that of the pool; `pacing` null: none."""

    limit: int | None = None
    pacing: Pacing | Literal["auto"] | None = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalWanted:
    """What to rehearse, at most 8 scenes, with the jobs that ended in the last `since` seconds."""

    scenes: list[SceneWanted]
    since: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedScene:
    """What a limit and a pacing make of the jobs.

    `never` counts jobs that need more than the limit. `starts_per_minute`, `running` and `waiting`
    are the most at once. `waited` has the median, the 90th and the 99th percentile in seconds;
    null: no job was granted. `limit` and `pacing` null in `actual`: as they were.
    """

    limit: int | None
    pacing: Pacing | None
    jobs: int
    never: int
    starts_per_minute: int
    running: int
    waiting: int
    last_start_seconds: float
    waited: list[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What has happened to the jobs of a pool, and what would have with other limits and pacings.

    At most 2000 jobs are replayed; `cut`: there were more, and these are the newest.
    """

    as_of: str
    pool: str
    covered_seconds: float
    cut: bool
    actual: RehearsedScene
    scenes: list[RehearsedScene]
