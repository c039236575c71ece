"""The evidence for choosing a pool's limit."""

from __future__ import annotations

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLine:
    """Outcomes of starts at one limit and one number of starts per minute.

    `starts_per_minute` is how many units were granted within the 60 seconds up to a start, that
    start included. It is known as long as the ended lease is kept; null: no longer known.
    """

    limit: int
    starts_per_minute: int | None
    ok: int
    failed: int
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAsked:
    """How long ago leases may have ended, in seconds; 24 hours by default."""

    since: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReport:
    """The evidence for choosing a pool's limit: outcomes, and how long leases waited and lasted.

    Outcomes are those of the last 90 days. Each list of seconds has the median, the 90th and the
    99th percentile of the leases that ended within the last `covered_seconds`; null: there were
    none. That is less than `asked_seconds` if older leases are not kept any more, or if `cut`:
    there were more than 50000, and these are the newest.
    """

    pool: str
    asked_seconds: float
    covered_seconds: float
    cut: bool
    leases: int
    waited: list[float] | None
    held: list[float] | None
    causes: dict[str, int]
    outcomes: list[OutcomeLine]
