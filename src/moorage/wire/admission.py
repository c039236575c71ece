"""Pools, leases and the waiting line. All durations are in seconds."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from moorage.wire.dataclass import dataclass
from moorage.wire.defaults import (
    HALF_LIFE_SECONDS,
    PATIENCE_SECONDS,
    PROXY_TTL_SECONDS,
    QUEUE_MAX,
    TTL_SECONDS,
    TTL_SECONDS_MAX,
)
from moorage.wire.enums import (
    AdaptiveMode,
    Cause,
    Choose,
    Expire,
    OnRetry,
    Order,
    Result,
    State,
    Until,
    Verdict,
)
from moorage.wire.pages import PageAsked
from moorage.wire.slots import LateRelease

DURATIONS = frozenset(
    {"ttl", "ttl_max", "hold", "hold_max", "cooldown", "lock_delay", "proxy_ttl", "book_ahead"}
)
"""Properties of a pool that are durations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """The least time between two granted units, after `burst` of them at once.

    Up to `jitter` is added to each interval.
    """

    interval: float
    burst: int = 1
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """How the limit follows the outcomes of starts, between `floor` and `ceiling`.

    It rises by a tenth if the share of failed starts is `good`, and falls to seven tenths if it is
    `bad`, or if `throttled` starts are throttled within one hold. `mode` advise only says so.
    """

    floor: int
    ceiling: int
    mode: AdaptiveMode = "advise"
    good: float = 0.02
    bad: float = 0.08
    throttled: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveStep:
    """What an adaptive limit has decided, and the outcomes that were its evidence.

    `acted`: the limit was changed; otherwise it is advice, or the limit is at its floor or ceiling.
    `text` is the same for people.
    """

    at: datetime
    verdict: Verdict
    before: int
    after: int
    acted: bool
    ok: int
    failed: int
    throttled: int
    correlated: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveTest:
    """The test of an adaptive limit, which has begun after its last decision.

    `limit` is what it would set now: the last advice, or the present limit. `configured` is the
    limit that an operator has set. `leaning` is from -1 (good: a decision) to 1 (bad). `ok`,
    `failed` and `throttled` count the outcomes while at least 80 % of the limit was in use;
    `correlated` of them had the cause of another within a minute; `aside` are all others, which do
    not count. Until `frozen_until` none does, because the limit was just changed. `hold` is the
    number of seconds that it goes by: the pool's hold, or how long its jobs take. `text` is the
    same for people.
    """

    limit: int
    configured: int
    leaning: float
    ok: int
    failed: int
    throttled: int
    correlated: int
    aside: int
    frozen_until: datetime | None
    hold: float
    text: str
    last: AdaptiveStep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShare:
    """How a pool is divided among those who share it: who has used less lately goes first.

    They are the `owner`s, the `project`s (an owner without one is by itself), or the values of a
    label, `label:NAME`. What one has used counts half after `half_life` seconds. One with weight 2
    gets twice as much as one with weight 1; `weights` are by sharer, a project is `PROJECT/*`, and
    `default` is the weight of all others.
    """

    by: str
    half_life: float = HALF_LIFE_SECONDS
    weights: dict[str, int] = field(default_factory=dict)
    default: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one sharer of a pool with a fair share has of it.

    `used` is how many units its leases have, `waiting` how many of its tickets wait. `debt` is how
    far it is ahead of its share, in seconds of one unit, divided by its weight: its next ticket is
    behind tickets of those with less.
    """

    name: str
    weight: int
    used: int
    waiting: int
    debt: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWanted:
    """The complete description of a pool; an omitted field has its default.

    Without `limit` the limit is the number of slots, or with `per_member` that many units for each
    member of the group of reporters `member_group`, live or observed. `hold` is how long after its
    grant each lease ends by itself. A freed unit is unavailable for `cooldown`, or for `lock_delay`
    if that is longer and the holder did not return the unit: its lease was revoked, or its TTL
    expired.
    Without `pacing` a pool with a hold is paced at hold/limit with a burst of limit/10; `pacing`
    null: not paced. `quota` is the most units that one owner may have. `expire` keep: a lease that
    is not renewed in time still occupies its units. `on_retry` keep: a retry keeps its place.
    `proxy_ttl` ends a lease of the lease proxy that was not released until then; null: only the
    hold ends it.

    `native_slots`: the pool has named slots, which `/v1/pools/{name+}:slots` makes, and no limit.
    `adaptive`: the limit follows the outcomes of starts; null: it stays as it is set. Who names the
    present limit keeps what it has found; another one is a new start.

    `order` newest: of the tickets with one priority, the one that was asked for last goes first, so
    that others may wait for ever; only their patience bounds that.

    The other fields do not bind operators. Only `askers` may ask; null: any owner. Each is an
    owner, `PROJECT/*`, or `role:ROLE` for a role and those above. `priority_max` and `hold_max` are
    the most that a request may ask for. `queue_max_per_owner` is how many tickets of one owner may
    wait; null: a tenth of `queue_max`, but at least 10, or all of a shorter line. The owners of one
    project may have that many together, or as many as with null if that is more.

    `fair_share`: after the priority, the line is in the order of what each sharer has used; null:
    in the order of arrival. A request for units of such a pool can name no other pool.

    Pools of a `cohort` lend each other units that they do not use: each lends up to `lending`
    (null: all), and may occupy up to `borrowing` beyond its limit. Tickets within the limits of
    their pools go first. Such a pool has a limit, and a request for its units can name no other
    pool.
    `book_ahead` is how far ahead those that may ask may also book, and `book_hours` how many
    unit-hours one owner may have booked; null: only operators book.
    """

    limit: int | None = None
    ttl: float = TTL_SECONDS
    ttl_max: float = TTL_SECONDS_MAX
    hold: float | None = None
    cooldown: float = 0.0
    lock_delay: float = 0.0
    pacing: Pacing | Literal["auto"] | None = "auto"
    quota: int | None = None
    queue_max: int = QUEUE_MAX
    labels: dict[str, str] = field(default_factory=dict)
    on_retry: OnRetry = "keep"
    expire: Expire = "free"
    proxy_ttl: float | None = PROXY_TTL_SECONDS
    askers: list[str] | None = None
    priority_max: int | None = None
    hold_max: float | None = None
    queue_max_per_owner: int | None = None
    per_member: int | None = None
    member_group: str | None = None
    native_slots: bool = False
    order: Order = "oldest"
    adaptive: Adaptive | None = None
    fair_share: FairShare | None = None
    cohort: str | None = None
    lending: int | None = None
    borrowing: int = 0
    book_ahead: float | None = None
    book_hours: int | None = None
    generation: int | None = None
    """Refuse if the pool has another generation; 0: refuse if the pool exists; null: no check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overstay:
    """A lease that has lasted far longer than leases of its pool do, while a line waits behind it.

    `holder` is its holder as people know it. `granted_at` is since when its units are held, also by
    those who have handed them over. `usual` is how many seconds leases last at most, as a rule: the
    pool's hold, or several times the median of past leases. `blocks`: no lease of the pool is
    younger than that, so the line does not move; otherwise the lease is much older.
    """

    lease: str
    holder: str
    granted_at: datetime
    usual: float
    blocks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool as it is. `pacing` is the one in force, whether set or derived.

    `free` is how many units could be granted now if no ticket were waiting; negative: the pool is
    over its limit. `pause_reason` is why it is paused; empty: it is not, or nobody has said.
    `paused_until` is when its pause ends by itself; null: when somebody resumes it. `paused_by` is
    who paused it last, as in the audit trail; empty: it is not paused, or this is unknown.
    `overstay` is the lease that the line waits behind for too long; null: there is none.
    `next_grant_at` is when pacing permits the next grant; null: now. `first` is the
    first ticket in the line, whose `waiting` says why it is not granted; null: no ticket waits.
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
    per_member: int | None
    member_group: str | None
    native_slots: bool
    order: Order
    book_ahead: float | None
    book_hours: int | None
    generation: int
    paused: bool
    pause_reason: str
    units: int
    """The limit, what the members make of it, or the number of slots that there are or may be."""
    occupied: int
    resting: int
    waiting: int
    free: int
    over: bool
    unheard: int
    """Leases that were not renewed in time and still occupy units (`expire: keep`)."""
    slots: dict[str, int]
    """The number of slots in each state; empty: the pool has no slots."""
    next_grant_at: datetime | None
    first: Lease | None
    created_at: datetime
    updated_at: datetime
    template: str | None = None
    """The template that has made it, so that it goes when it is idle; null: it stays."""
    booked_until: datetime | None = None
    """When the last of its bookings ends; null: it has none."""
    owner_queue_max: int = 0
    """How many tickets of one owner may wait: `queue_max_per_owner`, or its default."""
    paused_until: datetime | None = None
    paused_by: str = ""
    overstay: Overstay | None = None
    adaptive: Adaptive | None = None
    adaptive_test: AdaptiveTest | None = None
    """The test of the adaptive limit; null: the pool has none."""
    fair_share: FairShare | None = None
    shares: list[Share] = field(default_factory=list)
    """With a fair share: what each sharer has, those with most units first."""
    cohort: str | None = None
    lending: int | None = None
    borrowing: int = 0
    borrowed: int = 0
    """Units that it has beyond its limit from other pools of its cohort, with those in cooldown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPage:
    """Pools by name, and the cursor of the next page; null: this is the last.

    `as_of` is the cursor of the revision at which they were read, for `/v1/watch`.
    """

    pools: list[Pool]
    next: str | None
    as_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseWanted:
    """Why a pool is paused, for those who wait, and when the pause ends by itself.

    `until` is a time, `lasts` the same as a duration in seconds; null: somebody resumes the pool.
    """

    reason: str = ""
    until: datetime | None = None
    lasts: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedWanted:
    """Units of one pool. `labels`: slots that have all of them; only for pools with slots."""

    pool: str
    units: int = 1
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationsWanted:
    """The allocations of a consumer with the lease: amounts by provider and resource class."""

    consumer: str
    allocations: dict[str, dict[str, int]]
    project_id: str
    user_id: str
    consumer_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeWanted:
    """The group of a request: only its newest request waits, in one project or for one owner.

    The ticket of the group that waits ends, as `superseded`. With `cancel_running` the holders of
    its leases are asked to stop.
    """

    group: str
    cancel_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWanted:
    """A request for units of one or more pools, all at once or none.

    `key` is chosen by the caller and makes the request safe to repeat: the same key and body give
    the same lease for as long as it lasts and is kept after its end. Higher `priority` goes first.
    A ticket that is not polled for `patience` is withdrawn. `force` (operators and governors) is
    granted at once, over the limit if necessary. With `pull` the ticket is granted only while a
    request waits for it, and passed over otherwise. With `reopen` a key whose lease has ended makes
    a new lease.

    `any_of`: one of these lists of needs is granted, together with all of `needs`, which may be
    empty then. `choose` says which one if several fit: the one whose pools have the least share of
    their limits occupied then, or the first. With `preemptible` its holder may be asked to stop for
    tickets that go before it, and has this grace in seconds.
    `booking` is the id of a booking of the caller: the units are those that it keeps, from its
    start until its end. Other leases are granted only if their hold ends before bookings need their
    units. `borrow` is the shortest hold that will do, in seconds: then the lease may end sooner, at
    the time at which a booking needs its units.
    """

    needs: list[NeedWanted] = field(default_factory=list)
    any_of: list[list[NeedWanted]] = field(default_factory=list)
    choose: Choose = "least_loaded"
    key: str
    ttl: float | None = None
    hold: float | None = None
    priority: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    patience: float = PATIENCE_SECONDS
    force: bool = False
    pull: bool = False
    reopen: bool = False
    booking: str | None = None
    borrow: float | None = None
    allocations: AllocationsWanted | None = None
    supersede: SupersedeWanted | None = None
    preemptible: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFor:
    """What a ticket waits for in one of its alternatives; the members are those of `Waiting`."""

    needs: list[NeedWanted]
    position: int
    eta_seconds: tuple[float, float] | None
    overdue: bool
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The place of a ticket in its line. `position` 1 is first; with several pools: in the longest.

    `eta_seconds` is a range, earliest and latest, estimated from the age of current leases and the
    length of past ones; null: there is no basis for an estimate, or `overdue`: current leases last
    longer than usual. `code` is why the ticket waits, for programs; `reason` the same for people.

    Of a ticket with `any_of` this is about the alternative that is expected first, and `reason`
    names what each of them waits for. `alternatives` has all of them, in the order in which they
    are expected.

    `share` is what its sharer has of a pool with a fair share; null: it has none.
    """

    position: int
    eta_seconds: tuple[float, float] | None
    overdue: bool
    code: str
    reason: str
    alternatives: list[WaitingFor] = field(default_factory=list)
    share: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An offer to hand a lease over: `to` whom, and until when it can be accepted."""

    to: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Why a lease is kept for inspection, and since when; it lasts until its `hold_until`.

    `waiting` is how many tickets wait in the lines of its pools.
    """

    reason: str
    since: datetime
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease, or the ticket that waits to become one.

    `state` is waiting, granted or ended. `token` is the fencing token, shown to the owner and to
    operators. `unheard`: it was not renewed in time and still occupies its units. A holder must
    stop before `expires_at`; null: the lease need not be renewed. `cause` is why it ended.
    `outcome` of what was started with it: ok, failed or throttled; null: not reported.

    `record` is what its holder has written last; null: nothing. `record_version` is the number of
    writes, and `record_age` the seconds since the last one, or since the grant if there was none;
    null: it was not granted.

    `group` is that of which only the newest request waits; empty: none. `superseded_by` is a later
    request of it; null: there was none while this was live. `stop_until` is when a lease ends whose
    holder is asked to stop; null: it is not asked. `preemptible` is the grace in seconds of a
    holder who may be asked to stop for other tickets; null: it may not. `preempted_by` is the
    ticket for which it is asked.

    `any_of` has the complete alternatives that were asked for; empty: there were none. Until one of
    them is granted, `needs` says in which lines the ticket is, and for how many units at least.
    `offer`: its holder offers it to another owner; null: it does not, or no longer. `taken_from` is
    the lease of the owner who has handed it over. `kept`: it is kept for inspection after its job.
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
    record: dict[str, Any] | None
    record_version: int
    record_age: float | None
    waiting: Waiting | None
    """Of a ticket; null after it was granted or has ended."""
    group: str = ""
    superseded_by: str | None = None
    stop_until: datetime | None = None
    preemptible: float | None = None
    preempted_by: str | None = None
    booking: str | None = None
    """The booking whose units it has, or waits for."""
    yields_to: str | None = None
    """The booking that needs its units at `hold_until`: it has borrowed them."""
    notice: str = ""
    """What its holder should know, in a sentence; empty: nothing."""
    late_releases: list[LateRelease] = field(default_factory=list)
    """Of a lease of the lease proxy that is shown alone, see `LateRelease`."""
    any_of: list[list[NeedWanted]] = field(default_factory=list)
    choose: Choose | None = None
    """Of a request with alternatives."""
    offer: Offer | None = None
    taken_from: str | None = None
    kept: Kept | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePage:
    """Leases and tickets, oldest request first, and the cursor of the next page.

    `as_of` is the cursor of the revision at which they were read, for `/v1/watch`. A page with
    `label` or `older` may take several reads, and may then have later changes.
    """

    leases: list[Lease]
    next: str | None
    as_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesAsked(PageAsked):
    """Which leases to list: of a pool, in a state (waiting, granted, ended), of an owner.

    `key_prefix` needs an owner, or a governor's token: only leases whose key begins with it.
    `id_prefix`: only those whose id begins with it; at least 8 characters. `group`: those of the
    group, in any project. `mine`: those of the caller. `offered`: granted ones that the caller may
    accept. `label` is NAME=VALUE, and may be repeated: leases that have all of these labels.
    `older` is in seconds: leases that have been in their state for at least this time, since the
    request, the grant or the end. `consumer` is a UUID: leases that have, or ask for, allocations
    of this consumer. `machine` may be repeated: leases of a machine that any of these names or
    UUIDs mean, as the host in the key, in the labels holder, host or node, or as a provider in the
    allocations. With `label`, `older`, `consumer`, `machine` or `offered` a page may have fewer
    leases than `limit`, or none, and still a `next`.
    """

    pool: str | None = None
    state: State | None = None
    owner: str | None = None
    key_prefix: str | None = None
    id_prefix: str | None = None
    group: str | None = None
    mine: bool = False
    offered: bool = False
    label: list[str] = field(default_factory=list)
    older: float | None = None
    consumer: str | None = None
    machine: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAsked:
    """How long to wait, in seconds, for a ticket to be granted or ended; at most 60."""

    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLooked(LeaseAsked):
    """How long to wait, and for what: until a ticket is granted or ends, or only until it ends.

    Waiting for the end does not extend the life of a ticket or lease. `asked_to_stop` also waits
    for the end, but not after the holder is asked to stop.
    """

    until: Until = "granted"
