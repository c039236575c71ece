"""Reports of pools: what is in them, and the evidence for choosing their limits."""

from __future__ import annotations

from moorage.wire.admission import Lease, Pool
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
    none. That is less than `asked_seconds` if older leases are no longer kept, or if `cut`:
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
    gave_up: int = 0
    """Tickets that ended without a grant because their clients stopped waiting, or were gone."""
    gave_up_after: list[float] | None = None
    """How long these had waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContentsAsked:
    """How many leases and tickets to return, at most 1000 each."""

    leases: int = 100
    tickets: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContents:
    """A pool, its leases and its line, as of one revision of the ledger.

    Only `unheard` of the pool, and why tickets wait, may be up to a second older.
    `as_of` is the cursor of that revision, for `/v1/watch`. `leases` are the first ones by grant,
    `tickets` the first ones in line. `granted` and `waiting` are how many there are in all, and
    `granted_units` and `waiting_units` how many units of this pool they have and want.
    """

    as_of: str
    pool: Pool
    leases: list[Lease]
    tickets: list[Lease]
    granted: int
    granted_units: int
    waiting: int
    waiting_units: int
