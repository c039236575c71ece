"""The values of admission. All are immutable; times are microseconds."""

from typing import Literal

from msgspec import Struct, structs

from moorage.core.clock import SECOND, Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.pool_values import Adaptation, Adaptive, FairShare, Sharing
from moorage.core.service_time import Moment, Timeline
from moorage.wire import enums
from moorage.wire.defaults import QUEUE_MAX

FREE = "free"
"""The state of a slot that may be granted to any ticket."""

LEASED = "leased"
"""The state of a slot occupied by a lease of the native API."""

RENEWALS = 3
"""How many times a holder renews its lease within a TTL."""

CONFIRM_WITHIN = 15 * SECOND
"""Alive time in which a grant must be confirmed: its holder has read it, or has renewed it."""

State = enums.State
Cause = enums.Cause
Result = enums.Result

UNRETURNED: frozenset[Cause] = frozenset({"revoked", "ttl_over", "superseded", "preempted"})
"""Causes of ends after which the holder may not know that its lease has ended."""


class Pacing(Struct, frozen=True):
    """The least time between two granted units, after `burst` of them at once.

    `jitter` is the most that is added to an interval; it is derived from a hash, not random.
    """

    interval: int
    burst: int = 1
    jitter: int = 0


class PoolSpec(Struct, frozen=True):
    """A pool's settings, chosen by an operator. Times are microseconds."""

    limit: int | None
    """Units; None: one per slot of the pool. With `per_member` it follows the members."""
    ttl: int
    ttl_max: int
    hold: int | None = None
    cooldown: int = 0
    lock_delay: int = 0
    """Least cooldown of units whose lease was revoked or not renewed in time."""
    pacing: Pacing | None = None
    quota: int | None = None
    """Units that one owner may occupy."""
    queue_max: int = QUEUE_MAX
    labels: dict[str, str] = {}
    on_retry: enums.OnRetry = "keep"
    expire: enums.Expire = "free"
    proxy_ttl: int | None = None
    """Longest time that a lease of the lease proxy lasts after its confirmation; None: no bound."""
    askers: tuple[str, ...] | None = None
    """The callers that may ask, see `bounds`; None: every caller with the right to ask."""
    priority_max: int | None = None
    hold_max: int | None = None
    queue_max_per_owner: int | None = None
    """Tickets of one owner that may wait; None: as `bounds.owner_queue_max` says."""
    per_member: int | None = None
    """Units for each member of `member_group`, a group of reporters; None: the limit is fixed."""
    member_group: str | None = None
    native_slots: bool = False
    """Its slots are made by the native API, so Boskos' configuration leaves them alone."""
    order: enums.Order = "oldest"
    """Which request goes first, among those with one priority; see `admit.order`."""
    adaptive: Adaptive | None = None
    """How the limit follows the outcomes of starts; None: only operators change it."""
    fair_share: FairShare | None = None
    """None: its line is in the order of arrival."""
    cohort: str | None = None
    """The cohort whose pools lend each other units, see `cohorts.py`; None: it is in none."""
    lending: int | None = None
    """Units that others of the cohort may borrow; None: all that are unused."""
    borrowing: int = 0
    """Units that it may occupy beyond its limit, if others of its cohort lend them."""
    book_ahead: int | None = None
    """How far ahead callers that are no operators may book; None: only operators may."""
    book_hours: int | None = None
    """Unit-hours that one such owner may have booked ahead; set with `book_ahead`."""


class Rest(Struct, frozen=True):
    """Freed units that are in cooldown until some service time."""

    until: Instant
    units: int


class Growth(Struct, frozen=True):
    """How many slots a pool makes by itself: a dynamic resource type of Boskos."""

    least: int
    """The fewest slots, made even without waiting tickets. 0 and `most` 0: all are removed."""
    most: int
    """The most slots, including those made for waiting tickets."""
    state: str
    """The state of a new slot."""
    lifespan: int | None = None
    """Microseconds after its release until a slot is removed; None: it stays."""


class Template(Struct, frozen=True):
    """What becomes a pool once a request needs it, see `templates.py`. `name` ends with `*`."""

    name: str
    spec: PoolSpec
    idle: int
    """Microseconds after which a pool that nobody uses goes."""
    pools_max: int
    generation: int
    created_at: Instant
    """By the wall clock, as is `updated_at`."""
    updated_at: Instant


class OnDemand(Struct, frozen=True):
    """Of a pool that a request has made: the template, and when it goes."""

    template: str
    idle: int
    """As in the template when the pool was made."""
    idle_until: Instant | None = None
    """Service time at which it goes unless it is used before; None: it is in use."""


class Pool(Struct, frozen=True):
    """A named limit. `occupied` and `waiting` are stored sums over leases and tickets."""

    name: str
    spec: PoolSpec
    paused: bool
    generation: int
    occupied: int
    """Units of all granted leases, including forced ones; may exceed the limit after a change."""
    waiting: int
    """Tickets in its line."""
    gangs: int
    """Those of them that also need other pools."""
    resting: tuple[Rest, ...]
    paced_at: Instant
    """Service time up to which grants so far have used the pacing: the next grant may come when
    this is at most `burst - 1` intervals ahead."""
    wake_at: Instant | None
    """Service time at which a waiting ticket may be granted without another event; None: never."""
    created_at: Instant
    """By the wall clock, as is `updated_at`."""
    updated_at: Instant
    growth: Growth | None = None
    """None: all its slots are configured by name."""
    pause_reason: str = ""
    """Why it is paused, for people; empty: nobody has said."""
    paused_until: Instant | None = None
    """Service time at which its pause ends by itself; None: it lasts until it is resumed."""
    paused_by: str = ""
    """Who paused it last, as in the audit trail; empty: it is not paused, or this is unknown."""
    awaited: dict[str, int] = {}
    """Of a pool with slots: how many slots the tickets in its line need, by state; without those
    that ask for labels."""
    sought: dict[str, int] = {}
    """Of a pool with slots: how many slots such tickets need, by `Need.wanted`."""
    on_demand: OnDemand | None = None
    """None: an operator, or Boskos' configuration, has made or changed it."""
    adaptation: Adaptation | None = None
    """The state of its adaptive limit; None: it has none."""
    sharing: Sharing | None = None
    """None: it has no fair share, and no ticket in its line has a tag."""
    yields: int = 0
    """Units of leases whose holders may be asked to stop, or are."""
    booked_until: Instant | None = None
    """When its last booking ends, by the wall clock; None: it has none."""


class Drain(Struct, frozen=True):
    """Why a slot is not granted any more, and what becomes of it."""

    goes: bool
    """It is removed once it is free; otherwise it stays until it is resumed or removed."""
    reason: str
    at: Instant
    """By the wall clock."""


class LateRelease(Struct, frozen=True):
    """A release by name that may still come from an earlier holder, see `late_releases.py`."""

    until: Instant
    """Service time from which on it is not expected any more."""
    leases: tuple[LeaseId, ...] = ()
    """Whose it may be: as many of their holders have not released the name as records name them;
    empty: it is not known whose."""


class Slot(Struct, frozen=True):
    """One named unit of a pool, in the terms of a Boskos resource.

    When it is occupied, `owner` is not empty, and `lease` is the live lease that occupies it.
    `updated_at` is the wall-clock time of the last change of owner or state, or of its holder's
    last update; the slot that has been free longest is granted first.
    """

    pool: str
    name: str
    state: str
    owner: str
    lease: LeaseId | None
    user_data: dict[str, str]
    updated_at: Instant
    expires_at: Instant | None = None
    """Of a dynamic slot: wall-clock time from which it is removed once it is free."""
    dynamic: bool = False
    rests_until: Instant = Instant(0)
    """Service time until which it is not granted: its cooldown."""
    late: tuple[LateRelease | Instant, ...] = ()
    """For each earlier holder whose release by name may still come: until when the next such
    release counts as that holder's; ascending. Rows of formats below 5 have only the times."""
    doubtful: tuple[LeaseId, ...] = ()
    """Of a slot for which a release has come during the present lease, of the lease proxy: whose it
    may have been, if not the present holder's own."""
    heard_at: Instant | None = None
    """Alive time of its holder's last update; None: of before this was stored."""
    labels: dict[str, str] = {}
    """The bounds of requests."""
    drain: Drain | None = None
    """None: it may be granted."""

    @property
    def occupied(self) -> bool:
        """Does a lease have it?"""
        return self.owner != ""


class Need(Struct, frozen=True):
    """Units of one pool. In a pool with slots: slots in `state`, which then change to `dest`."""

    pool: str
    units: int
    state: str = FREE
    dest: str = LEASED
    wanted: str = ""
    """Labels that its slots must have, see `wishes.py`; empty: any slot will do."""


class FencingToken(Struct, frozen=True, order=True):
    """A fencing token: strictly rising per pool and per slot, also over restarts and restores."""

    epoch: int
    revision: int
    n: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}.{self.n}"


class Choice(Struct, frozen=True):
    """How one of the alternatives of a request is chosen, and what follows from the choice."""

    in_order: bool = False
    """The first that fits is granted; otherwise the least loaded one of those that fit."""
    ttl_open: bool = False
    """The pools of the granted alternative decide about the TTL: the request names none."""
    hold_open: bool = False
    """Likewise about the hold."""


class Offer(Struct, frozen=True):
    """A lease that its holder wants to hand over, see `handing_over.py`. Times: service time."""

    to: str
    """The owner who may accept it."""
    at: Instant
    until: Instant
    """From then on it cannot be accepted."""


class Kept(Struct, frozen=True):
    """Why a lease is kept for inspection after its job, see `keeping.py`; until its hold ends."""

    reason: str
    since: Instant
    """Service time."""


class Lease(Struct, frozen=True):
    """A ticket in a waiting line, and the lease that it becomes.

    Deadlines: `heard_until` is alive time: a ticket not polled by then is withdrawn, a lease not
    renewed by then is over (or shown as unheard, see `keep`); None: no polls or renewals are
    needed. `hold_until` and all other times are service time.
    """

    id: LeaseId
    owner: str
    key: str
    """The idempotency key, unique per owner."""
    digest: str
    """Of the request; the same key with another digest is refused."""
    needs: tuple[Need, ...]
    """By pool name, each pool (and state) once; of a ticket with `alternatives`: its lines."""
    state: State
    priority: int
    """Higher goes first."""
    arrival: int
    """The global order of requests."""
    ttl: int | None
    """None: it need not be renewed."""
    hold: int | None
    patience: int
    labels: dict[str, str]
    forced: bool
    pull: bool
    """Granted only while its client asks for it, see `bars.py`."""
    keep: bool
    """Not renewed, it still occupies its units: one of its pools has `expire: keep`."""
    asked_at: Instant
    heard_until: Instant | None
    allocations: str | None = None
    """Its allocations in the ledger once it is granted; opaque here."""
    token: FencingToken | None = None
    granted_at: Instant | None = None
    hold_until: Instant | None = None
    slots: dict[str, tuple[str, ...]] = {}
    """Names of the slots that it occupies, or occupied, by pool."""
    ended_at: Instant | None = None
    cause: Cause | None = None
    detail: str = ""
    """Of an end: who or what, for people. Of a ticket: why it did not fit into the ledger."""
    outcome: Result | None = None
    """The outcome of what was started with it; None: none was reported."""
    record: str | None = None
    """The JSON object that its holder has written last; opaque here."""
    record_version: int = 0
    """How many times it was written."""
    recorded_at: Instant | None = None
    """When it was written last."""
    priority_asked: int | None = None
    """Of what an operator has moved in line: the priority of its request."""
    forced_by_operator: bool = False
    """An operator has forced the grant of a ticket that waited; a retry of it is not forced."""
    attended: bool = False
    """It is known whether its client is there: its ticket is passed over while it is not, and its
    grant must be confirmed, see `bars.py`."""
    confirm_by: Instant | None = None
    """Of a grant that must be confirmed: the `heard_until` (alive time) that it has until then."""
    newest: bool = False
    """It was asked for in pools whose newest request goes first."""
    group: str = ""
    """Only the newest request of a group waits, see `superseding.py`; empty: it is in none."""
    superseded_by: LeaseId | None = None
    """A later request of its group; None: there was none while it was live."""
    stop_until: Instant | None = None
    """Service time until which its holder, who is asked to stop, has to release it, if there is
    no outage before; see `stops_at`."""
    stop_downtime: int = 0
    """Microseconds of all outages before its holder was asked to stop."""
    alternatives: tuple[tuple[Need, ...], ...] = ()
    """What its request asked any of, see `alternatives.py`; empty: it asked for its needs only."""
    choice: Choice | None = None
    """Of a request with alternatives."""
    offer: Offer | None = None
    """The last offer to hand it over; it may be over."""
    kept: Kept | None = None
    """It needs no renewals, and ends with its hold; None: it is not kept for inspection."""
    taken_from: LeaseId | None = None
    """The lease whose units it has taken over from another owner; None: it was granted in line."""
    held_since: Instant | None = None
    """If it was handed over: the grant of the first lease in its chain, for `hold_max`."""
    place: int = 0
    """Its tag in a pool with a fair share: lower goes first among those of its priority."""
    charge: int = 0
    """In such a pool: what each of its units adds to its sharer's tags."""
    preemptible: int | None = None
    """The grace of its holder, who may be asked to stop for another ticket, see `preemption.py`;
    None: it may not."""
    preempted_by: LeaseId | None = None
    """The ticket for which its holder is asked to stop until `stop_until`."""
    booking: BookingId | None = None
    """The booking whose units it uses."""
    booked_until: Instant | None = None
    """Service time at which that booking ends, as was known last: a ticket waits no longer."""
    borrow: int | None = None
    """The shortest hold that will do, if a booking needs its units sooner than its own ends."""
    yields_to: BookingId | None = None
    """The booking that needs its units when its hold ends: it has borrowed them."""


class StopRequest(Struct, frozen=True):
    """Why a lease is asked to stop for a ticket."""

    rule: Literal["priority", "share", "loan"]
    pool: str
    """Of the ticket."""


class StartOutcome(Struct, frozen=True):
    """The outcome of a start, reported once by its holder; evidence for choosing a limit."""

    lease: LeaseId
    pool: str
    at: Instant
    result: Result
    detail: str
    limit: int
    """The pool's limit at the time of the report."""
    occupied: int
    """Occupied units of the pool at that time, including any of this lease."""
    cause: str = ""
    """Of a failure, the same for failures that belong together; empty: none was given."""


def key_left(lease: Lease) -> Lease:
    """Return an ended lease with another key, so that a new lease of its owner can use the key."""
    return structs.replace(lease, key=f"{lease.key}/{lease.id}")


def has_left_key(lease: Lease) -> bool:
    """May this lease have left its key to another? Keys of live leases never change."""
    return lease.state == "ended" and lease.key.endswith(f"/{lease.id}")


def first_end(hold_until: Instant | None, stop_until: Instant | None) -> Instant | None:
    """Return the service time at which a lease ends whatever its holder does; None: never."""
    if hold_until is None or stop_until is None:
        return stop_until if hold_until is None else hold_until
    return min(hold_until, stop_until)


def due_of(lease: Lease, timeline: Timeline | None = None) -> Instant | None:
    """Return the service time at which a lease or ticket is over; None: only events end it.

    Exact unless there is a further outage, which can only make it later. Without the timeline it is
    a lower bound: as if there had been no outages.
    """
    if lease.state == "ended":
        return None
    timeline = timeline or Timeline()
    keeps = lease.state == "granted" and lease.keep and not is_unconfirmed(lease)
    heard = None if keeps else _heard_due(lease, timeline.downtime, timeline.outage_ended_at)
    ends = lease.hold_until
    if lease.stop_until is not None:
        ends = first_end(ends, stops_at(lease, timeline.downtime))
    if lease.booked_until is not None and lease.state == "waiting":
        ends = lease.booked_until
    if ends is None or heard is None:
        return heard if ends is None else ends
    return min(heard, ends)


def stops_at(lease: Lease, downtime: int) -> Instant | None:
    """Return the service time at which a lease ends whose holder is asked to stop; None: it is not.

    Nobody learns of the request during an outage, and what was started runs on: so the time stops.
    """
    until = lease.stop_until
    return None if until is None else Instant(until + max(0, downtime - lease.stop_downtime))


def is_unconfirmed(lease: Lease) -> bool:
    """Is it unconfirmed that anybody has learned of a grant? Then its units are not in use.

    A confirmation gives it its full TTL, or none: another `heard_until` in either case.
    """
    by = lease.confirm_by
    return lease.state == "granted" and by is not None and lease.heard_until == by


def confirmed_until(lease: Lease, moment: Moment) -> Instant | None:
    """Return the `heard_until` that a confirmation now gives a lease; None: it has no TTL."""
    return None if lease.ttl is None else Instant(moment.alive + lease.ttl)


def confirms_by(ttl: int | None, moment: Moment) -> Instant:
    """Return until when (alive time) a grant now must be confirmed: always before its TTL ends."""
    within = CONFIRM_WITHIN if ttl is None else min(CONFIRM_WITHIN, ttl - 1)
    return Instant(moment.alive + within)


def is_unheard(lease: Lease, moment: Moment) -> bool:
    """Is a lease kept although it was not renewed in time? Without `keep` it would be over."""
    if lease.state != "granted" or not lease.keep or is_unconfirmed(lease):
        return False
    due = _heard_due(lease, moment.at - moment.alive, moment.outage_ended_at)
    return due is not None and due <= moment.at


def units_held_since(lease: Lease) -> Instant | None:
    """Return since when its units are held, also by those who handed them over; None: not yet."""
    return lease.granted_at if lease.held_since is None else lease.held_since


def since_of(lease: Lease) -> Instant:
    """Return since when (service time) a lease has been in its state."""
    if lease.ended_at is not None:
        return lease.ended_at
    return lease.asked_at if lease.granted_at is None else lease.granted_at


def record_age(lease: Lease, at: Instant) -> int | None:
    """Return how long ago (service time) a lease was recorded, or else granted; None: neither."""
    since = lease.granted_at if lease.recorded_at is None else lease.recorded_at
    return None if since is None else max(0, at - since)


def _heard_due(lease: Lease, downtime: int, outage_ended_at: Instant) -> Instant | None:
    """Return the service time until which a ticket or lease must be polled or renewed.

    None: it need not be. After an outage a holder has one renewal interval to renew its lease, but
    at most one TTL beyond its deadline: so repeated restarts do not postpone the end for ever. For
    a grant without a confirmation, both are `CONFIRM_WITHIN`.
    """
    if lease.heard_until is None:
        return None
    due = lease.heard_until + downtime
    if lease.state == "waiting" or not outage_ended_at:
        return Instant(due)
    if is_unconfirmed(lease):
        grace = outage_ended_at + CONFIRM_WITHIN
        return Instant(max(due, min(grace, due + CONFIRM_WITHIN)))
    if lease.ttl is None:
        return Instant(due)
    grace = outage_ended_at + lease.ttl // RENEWALS
    return Instant(max(due, min(grace, due + lease.ttl)))
