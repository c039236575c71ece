"""Pools, leases and the waiting line. All durations are in seconds."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from moorage.wire.enums import Cause, Expire, OnRetry, Result, State, Until
from moorage.wire.pages import PageAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """The least time between two granted units, after `burst` of them at once.

    Up to `jitter` is added to each interval.
    """

    interval: float
    burst: int = 1
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWanted:
    """What a pool shall be: all of it, what is left out has its default.

    Without `limit` it is as many units as the pool has slots. `hold` ends each lease by itself so
    long after its grant. A freed unit rests for `cooldown`, or for `lock_delay` if that is longer
    and its holder did not give it back: it was revoked, or its TTL was over. Without `pacing` a
    pool with a hold is paced at hold/limit with a burst of limit/10; `pacing` null: not paced.
    `quota` is the most that one owner may hold. `expire` keep: a lease whose holder is not heard of
    goes on to occupy. `on_retry` keep: who retries keeps its place. `proxy_ttl` ends a lease of the
    lease proxy that was not given back by then; null: only the hold does.

    The rest binds all but operators. `askers` may ask, null: everybody; each is an owner,
    `PROJECT/*`, or `role:ROLE` for a role and those above. `priority_max` and `hold_max` are the
    most that may be asked for; so many tickets of one owner may wait as `queue_max_per_owner`.
    """

    limit: int | None = None
    ttl: float = 60.0
    ttl_max: float = 86_400.0
    hold: float | None = None
    cooldown: float = 0.0
    lock_delay: float = 0.0
    pacing: Pacing | Literal["auto"] | None = "auto"
    quota: int | None = None
    queue_max: int = 10_000
    labels: dict[str, str] = field(default_factory=dict)
    on_retry: OnRetry = "keep"
    expire: Expire = "free"
    proxy_ttl: float | None = None
    askers: list[str] | None = None
    priority_max: int | None = None
    hold_max: float | None = None
    queue_max_per_owner: int | None = None
    generation: int | None = None
    """Refuse if the pool's generation is another one; 0: if there is one. Null: whatever is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool as it is. `pacing` is what holds, chosen or not.

    `free` is what could be granted now if nobody were before; negative: it is over its limit.
    `next_grant_at` is when pacing permits the next grant; null: now. `first` is the ticket that is
    first in its line, whose `waiting` tells what keeps it from being granted; null: nobody waits.
    """

    name: str
    limit: int | None
    ttl: float
    ttl_max: float
    hold: float | None
    cooldown: float
    lock_delay: float
    pacing: Pacing | None
    quota: int | None
    queue_max: int
    labels: dict[str, str]
    on_retry: OnRetry
    expire: Expire
    proxy_ttl: float | None
    askers: list[str] | None
    priority_max: int | None
    hold_max: float | None
    queue_max_per_owner: int | None
    generation: int
    paused: bool
    occupied: int
    resting: int
    waiting: int
    free: int
    over: bool
    unheard: int
    """Leases that go on to occupy though nobody has renewed them in time (`expire: keep`)."""
    slots: dict[str, int]
    """How many slots are in which state; empty: it has none."""
    next_grant_at: datetime | None
    first: "Lease | None"
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPage:
    """Pools by name, and the cursor of the next page; null: this is the last."""

    pools: list[Pool]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedWanted:
    """Units of one pool."""

    pool: str
    units: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationsWanted:
    """What a consumer shall hold in the ledger with the lease: amounts by provider and class."""

    consumer: str
    allocations: dict[str, dict[str, int]]
    project_id: str
    user_id: str
    consumer_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWanted:
    """A wish to occupy units of one or more pools, all at once or none.

    `key` is chosen by the caller and makes the request safe to repeat: the same key and body give
    the same lease for as long as it lives and 24 hours after. Higher `priority` goes first.
    A ticket that is not asked for during `patience` is withdrawn. `force` (operators only) occupies
    at once, over the limit if need be.
    """

    needs: list[NeedWanted]
    key: str
    ttl: float | None = None
    hold: float | None = None
    priority: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    patience: float = 30.0
    force: bool = False
    allocations: AllocationsWanted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Where a ticket stands. `position` 1 is the first of its line (of its longest, for gangs).

    `eta_seconds` is a range, earliest and latest, from how long its holders have held and past
    leases were held; null: there is nothing to tell from, or `overdue`: the units it waits for are
    held for longer than usual. `code` says what binds, for programs; `reason` the same for people.
    """

    position: int
    eta_seconds: tuple[float, float] | None
    overdue: bool
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease, or the ticket that waits to become one.

    `state` is waiting, granted or ended. `token` is the fencing token, shown to the owner and to
    operators. `unheard`: its holder has not renewed it in time, and it goes on to occupy. A holder
    must stop before `expires_at`; null: it need not renew. `cause` says why it has ended. `outcome`
    is what became of what was started with it: ok, failed or throttled; null: nobody has told.
    """

    id: str
    key: str
    owner: str
    state: State
    needs: list[NeedWanted]
    slots: dict[str, list[str]]
    labels: dict[str, str]
    priority: int
    forced: bool
    ttl: float | None
    hold: float | None
    asked_at: datetime
    granted_at: datetime | None
    expires_at: datetime | None
    hold_until: datetime | None
    ended_at: datetime | None
    cause: Cause | None
    detail: str
    outcome: Result | None
    unheard: bool
    token: str | None
    waiting: Waiting | None
    """Of a ticket; null once it is granted or has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePage:
    """Leases and tickets in the order in which they were asked for, and the next page's cursor."""

    leases: list[Lease]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesAsked(PageAsked):
    """Which leases to list: of a pool, in a state (waiting, granted, ended), of an owner."""

    pool: str | None = None
    state: State | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAsked:
    """How long to wait, in seconds, for a ticket to be granted or ended; at most 60."""

    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLooked(LeaseAsked):
    """How long to wait, and for what: until a ticket is granted or ends, or until it has ended.

    Waiting for the end does not extend the life of a ticket or lease.
    """

    until: Until = "granted"


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderProof:
    """The token that its holder was given; without it the owner's word is enough."""

    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldWanted(HolderProof):
    """A new end of the hold, counted from now; null: no end of its own."""

    hold: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWanted(HolderProof):
    """Release and ask anew in one step. `key` is that of the new attempt."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeWanted:
    """Why a lease is taken away, for whoever held it."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeWanted(HolderProof):
    """What became of what was started; the first that is told counts."""

    result: Result
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAsked:
    """A pool and the token that somebody shows."""

    pool: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Is the token that of a lease that holds units of the pool now?"""

    current: bool
    lease: str | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLine:
    """Outcomes of starts at one limit and with so many starts in the same minute.

    `starts_per_minute` is known of leases that are remembered: for 24 hours after their end.
    """

    limit: int
    starts_per_minute: int | None
    ok: int
    failed: int
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReport:
    """What is known for choosing a pool's limit: outcomes, and how long it was waited and held.

    Outcomes are those of the last 90 days. Each list of seconds has the median, the 90th and the
    99th percentile of the leases that ended within the last 24 hours; null: there were none.
    """

    pool: str
    leases: int
    waited: list[float] | None
    held: list[float] | None
    causes: dict[str, int]
    outcomes: list[OutcomeLine]
