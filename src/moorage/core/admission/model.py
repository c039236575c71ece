"""The values of admission, as they are after a change. All immutable; times are microseconds."""

from msgspec import Struct, structs

from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.wire import enums

FREE = "free"
"""The state of a slot that anybody may be granted."""

LEASED = "leased"
"""The state of a slot that a lease of the native API holds."""

SECOND = 1_000_000
"""Microseconds."""

DAY = 86_400 * SECOND

RENEWALS = 3
"""How often a holder renews its lease within a TTL."""

State = enums.State
Cause = enums.Cause
Result = enums.Result

UNRETURNED: frozenset[Cause] = frozenset({"revoked", "ttl_over"})
"""Causes of ends after which a holder may not know that it holds nothing any more."""


class Timeline(Struct, frozen=True):
    """How the service's time stands to the wall clock's; one row, and the lock of all admission.

    Service time is the wall clock's without its jumps: `wall + skew`. Alive time is service time
    without the service's outages: `wall + skew - downtime`.
    """

    arrivals: int = 0
    """Tickets so far: the arrival number of the newest."""
    skew: int = 0
    downtime: int = 0
    """Microseconds, all outages together."""
    alive_at: Instant = Instant(0)
    """Service time at which some process was last known to be alive; 0: never yet."""
    outage_ended_at: Instant = Instant(0)
    """Service time at which the newest outage ended; 0: there was none."""


class Moment(Struct, frozen=True):
    """Now, once per batch: in service time and in alive time."""

    at: Instant
    """For what is due whether or not the service runs: holds, pacing, cooldown."""
    alive: Instant
    """For what rests on being heard: TTL and patience."""
    outage_ended_at: Instant = Instant(0)


class Pacing(Struct, frozen=True):
    """The least time between two granted units, after `burst` of them at once.

    `jitter` is the most that is added to an interval; it is drawn from a seed, not at random.
    """

    interval: int
    burst: int = 1
    jitter: int = 0


BURST_SHARE = 10
"""A pool that is paced by default may grant a tenth of its limit at once."""


def pacing_default(limit: int | None, hold: int | None) -> Pacing | None:
    """Return the pacing of a pool that leaves it to us; None: it has no hold, or no limit.

    At `limit` units in `hold` microseconds a full pool starts as many as end, one after the other.
    """
    if not limit or hold is None:
        return None
    return Pacing(interval=max(1, hold // limit), burst=max(1, limit // BURST_SHARE))


class PoolSpec(Struct, frozen=True):
    """What an operator says of a pool. Times are microseconds."""

    limit: int | None
    """Units; None: as many as the pool has slots."""
    ttl: int
    ttl_max: int
    hold: int | None = None
    cooldown: int = 0
    lock_delay: int = 0
    """Units rest for so long if their lease ended without its holder giving it back."""
    pacing: Pacing | None = None
    quota: int | None = None
    """Units that one owner may hold."""
    queue_max: int = 10_000
    labels: dict[str, str] = {}
    on_retry: enums.OnRetry = "keep"
    expire: enums.Expire = "free"
    proxy_ttl: int | None = None
    """A lease of the lease proxy ends so long after its names were told; None: not by itself."""
    askers: tuple[str, ...] | None = None
    """Who may ask, see `bounds`; None: everybody who may ask at all."""
    priority_max: int | None = None
    hold_max: int | None = None
    queue_max_per_owner: int | None = None
    """Tickets of one owner that may wait."""


class Rest(Struct, frozen=True):
    """Freed units that rest until some service time."""

    until: Instant
    units: int


class Growth(Struct, frozen=True):
    """How many slots a pool makes by itself: a dynamic resource type of Boskos."""

    least: int
    """As many are made without being asked for. 0 and `most` 0: all of them shall go."""
    most: int
    """Up to as many are made for waiting tickets."""
    state: str
    """Of a slot that was just made."""
    lifespan: int | None = None
    """Microseconds after its release until a slot is taken away; None: it stays."""


class Pool(Struct, frozen=True):
    """A named limit. `occupied` and `waiting` are stored sums over leases and tickets."""

    name: str
    spec: PoolSpec
    paused: bool
    generation: int
    occupied: int
    """Units of all granted leases, forced ones included; may be over the limit after a change."""
    waiting: int
    """Tickets in its line."""
    gangs: int
    """Those of them that need other pools, too."""
    resting: tuple[Rest, ...]
    paced_at: Instant
    """Service time at which the units granted so far are paid for: a grant may come when this is
    at most `burst - 1` intervals ahead."""
    wake_at: Instant | None
    """Service time at which a waiting ticket may be granted by nothing but time; None: never."""
    created_at: Instant
    updated_at: Instant
    growth: Growth | None = None
    """None: its slots are those that somebody has named."""
    awaited: dict[str, int] = {}
    """Of a pool with slots: how many of them the tickets in its line need, by state."""


class Slot(Struct, frozen=True):
    """One named unit of a pool. Its words are those of a Boskos resource.

    It is held when `owner` is not empty; then `lease` is the live lease that holds it.
    `updated_at` is the wall-clock time of the last change of owner or state, or of its holder's
    last sign of life; the slot that has rested longest is granted first.
    """

    pool: str
    name: str
    state: str
    owner: str
    lease: LeaseId | None
    user_data: dict[str, str]
    updated_at: Instant
    expires_at: Instant | None = None
    """Of a dynamic slot: wall-clock time from which on it is taken away once nobody holds it."""
    dynamic: bool = False
    rests_until: Instant = Instant(0)
    """Service time until which it is not granted."""
    late: tuple[Instant, ...] = ()
    """For each earlier holder whose release by name may yet come: service time until which the next
    such release counts as its; rising. See `late_releases.py`."""
    heard_at: Instant | None = None
    """Alive time of its holder's last sign of life; None: before that was stored."""


class Need(Struct, frozen=True):
    """Units of one pool. Of a pool with slots: as many slots of `state`, which become `dest`."""

    pool: str
    units: int
    state: str = FREE
    dest: str = LEASED


class Token(Struct, frozen=True, order=True):
    """A fencing token: strictly rising per pool and per slot, over restarts and restores, too."""

    epoch: int
    revision: int
    n: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}.{self.n}"


class Lease(Struct, frozen=True):
    """A ticket in a waiting line, and the lease that it becomes.

    Deadlines: `heard_until` is alive time: a ticket that is not heard of until then is withdrawn, a
    lease not renewed until then is over (or shown as unheard, by its pools' `expire`); None: it
    need not be heard. `hold_until` is service time. All other times are service time, too.
    """

    id: LeaseId
    owner: str
    key: str
    """The idempotency key, unique per owner."""
    digest: str
    """Of the request; the same key with another digest is refused."""
    needs: tuple[Need, ...]
    """By pool name, each pool (and state) once."""
    state: State
    priority: int
    """Higher goes first."""
    arrival: int
    """Global order of asking."""
    ttl: int | None
    """None: until released; it need not be renewed."""
    hold: int | None
    patience: int
    labels: dict[str, str]
    forced: bool
    pull: bool
    """Granted only in a poll of its own."""
    keep: bool
    """An unheard lease goes on to occupy: one of its pools says `expire: keep`."""
    asked_at: Instant
    heard_until: Instant | None
    allocations: str | None = None
    """What it holds in the ledger once it is granted; not this room's words."""
    token: Token | None = None
    granted_at: Instant | None = None
    hold_until: Instant | None = None
    slots: dict[str, tuple[str, ...]] = {}
    """Names of the slots it holds, or held, by pool."""
    ended_at: Instant | None = None
    cause: Cause | None = None
    detail: str = ""
    """Of an end: who or what, for people. Of a ticket: what the ledger said when it did not fit."""
    outcome: Result | None = None
    """What became of what was started with it; None: nobody has told."""


class Outcome(Struct, frozen=True):
    """What became of a start, as its holder tells once; evidence for choosing a limit."""

    lease: LeaseId
    pool: str
    at: Instant
    result: Result
    detail: str
    limit: int
    """The pool's limit at the time at which it was told."""
    occupied: int
    """Units in use in the pool at that time, those of the lease included if it still holds any."""


def key_left(lease: Lease) -> Lease:
    """Return an ended lease that has left its key to a new one of the same owner."""
    return structs.replace(lease, key=f"{lease.key}/{lease.id}")


def has_left_key(lease: Lease) -> bool:
    """May this lease have left its key to another? Keys of living leases never change."""
    return lease.state == "ended" and lease.key.endswith(f"/{lease.id}")


def due_of(lease: Lease, timeline: Timeline | None = None) -> Instant | None:
    """Return the service time at which a lease is over; None: only events end it.

    Exact as long as there is no further outage, which can only make it later. Without the timeline
    a bound: as if there had been no outages.
    """
    if lease.state == "ended":
        return None
    heard = _heard_due(lease, timeline or Timeline())
    if lease.hold_until is None or heard is None:
        return heard if lease.hold_until is None else lease.hold_until
    return min(heard, lease.hold_until)


def _heard_due(lease: Lease, timeline: Timeline) -> Instant | None:
    """When an unheard ticket or lease is over.

    After an outage no lease ends before its holder had one renewal interval to be heard again,
    unless it was silent for a whole TTL longer: so restarts do not postpone it for ever.
    """
    if lease.heard_until is None or (lease.state == "granted" and lease.keep):
        return None
    due = lease.heard_until + timeline.downtime
    if lease.state == "waiting" or lease.ttl is None or not timeline.outage_ended_at:
        return Instant(due)
    grace = timeline.outage_ended_at + lease.ttl // RENEWALS
    return Instant(max(due, min(grace, due + lease.ttl)))
