"""The facts that a decision of admission may read, and the changes that it may make.

All of admission is decided under one lock, the row of the arrival numbers, so generations are not
needed: loaded rows equal stored rows. Lines are loaded in pages, when `admit` asks for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from msgspec import Struct, structs

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.model import (
    FencingToken,
    Lease,
    Pool,
    Slot,
    StartOutcome,
    StopRequest,
    Template,
    first_end,
)
from moorage.core.clock import Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.service_time import Timeline
from moorage.core.wishes import suits

_POOL = attrgetter("pool")


class Immediate(Struct, frozen=True):
    """Tickets for one slot each: either all are granted in this batch, or all are dropped.

    Boskos' janitors send such requests (without a request id), and clients that name resources.
    `admit` serves them last, by the rules of the line, and reads no more of the line for them.
    """

    tickets: tuple[Lease, ...]
    names: tuple[str, ...] = ()
    """Slot names, one per ticket; empty: one ticket, for the slot that has been free longest."""


@dataclass(slots=True)
class Keys:
    """The keys to load. Every member except `due` is a set; a batch loads the union of its keys.

    Also loaded: the timeline; every pool that a lease needs (except for `heard`); if one of these
    pools has gangs in its line, all pools that have gangs; the other pools of their cohorts; all
    slots of each pool; and if it has a
    quota, the units that each owner occupies.
    """

    pools: set[str] = field(default_factory=set)
    leases: set[LeaseId] = field(default_factory=set)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """(owner, key) of leases that may exist, including ended ones."""
    slots: set[tuple[str, str]] = field(default_factory=set)
    """(pool, slot) whose leases are needed; pool "" stands for any pool."""
    ends: set[str] = field(default_factory=set)
    """Pools of which every live lease and ticket is needed."""
    quotas: set[str] = field(default_factory=set)
    """Pools for which each owner's occupied units are needed, even if they have no quota yet."""
    due: Instant | None = None
    """Also leases and tickets due at this service time, and pools to wake: the first `DUE_MAX`
    of each."""
    holders: set[str] = field(default_factory=set)
    """Pools of which every granted lease is needed."""
    heard: set[LeaseId] = field(default_factory=set)
    """Leases that are needed without their pools: their requests cannot lead to grants."""
    touched: set[str] = field(default_factory=set)
    """Names of slots that are needed with their leases, but without their pools."""

    waiters: set[str] = field(default_factory=set)
    """Owners whose tickets may be too many in a line, so that these are counted."""
    heads: set[LeaseId] = field(default_factory=set)
    """Leases of `leases` for whose lines `Facts.heads` are needed."""
    cohorts: set[str] = field(default_factory=set)
    """Cohorts of which every pool is needed. Of a loaded pool's own cohort they always are."""
    member_groups: set[str] = field(default_factory=set)
    """Groups of reporters whose members decide the limits of some pools; all of these pools."""
    groups: set[tuple[str, str]] = field(default_factory=set)
    """Groups of requests of which every live lease and ticket is needed, see `superseding`."""
    makable: set[str] = field(default_factory=set)
    """Pools for which the templates are needed if they do not exist."""
    templates: bool = False
    """All templates are needed."""
    bookings: set[BookingId] = field(default_factory=set)
    """Bookings that are needed with their pools, cancelled ones as well."""
    called: frozenset[BookingId] = frozenset()
    """Bookings whose tickets are needed: the first `CALLED_MAX` of all."""
    booked: set[tuple[str, str]] = field(default_factory=set)
    """(owner, key) of bookings that may exist."""
    calendars: set[str] = field(default_factory=set)
    """Pools whose `Facts.holding` and bookings are needed, even if they know of no booking."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        self.pools |= other.pools
        self.member_groups |= other.member_groups
        self.cohorts |= other.cohorts
        self.leases |= other.leases
        self.asked |= other.asked
        self.groups |= other.groups
        self.makable |= other.makable
        self.templates |= other.templates
        self.slots |= other.slots
        self.ends |= other.ends
        self.holders |= other.holders
        self.heard |= other.heard
        self.touched |= other.touched
        self.heads |= other.heads
        self.waiters |= other.waiters
        self.quotas |= other.quotas
        self.bookings |= other.bookings
        self.called |= other.called
        self.booked |= other.booked
        self.calendars |= other.calendars
        if other.due is not None:
            self.due = other.due if self.due is None else max(self.due, other.due)

    def __len__(self) -> int:
        """Return the number of keys."""
        named = len(self.pools) + len(self.leases) + len(self.asked)
        named += len(self.slots) + len(self.ends) + len(self.quotas)
        named += len(self.holders) + len(self.heard) + len(self.touched)
        named += len(self.member_groups) + len(self.heads) + len(self.waiters) + len(self.groups)
        named += len(self.makable) + self.templates + len(self.cohorts)
        named += len(self.bookings | self.called) + len(self.booked) + len(self.calendars)
        return named + (self.due is not None)


@dataclass(slots=True)
class Line:
    """The first tickets of a pool's line, in its order, as stored before the batch."""

    tickets: list[LeaseId] = field(default_factory=list)
    whole: bool = False
    """These are all tickets of the line."""
    end: tuple[int, int, int] | None = field(default=None, compare=False)
    """The place of the last one as stored, see `admit.order`: the batch may have moved it since."""


class Changes(Struct):
    """After-images, by key. None: deleted. Within a batch the last one counts."""

    pools: dict[str, Pool | None] = {}
    leases: dict[LeaseId, Lease | None] = {}
    slots: dict[tuple[str, str], Slot | None] = {}
    templates: dict[str, Template | None] = {}
    outcomes: list[StartOutcome] = []
    bookings: dict[BookingId, Booking] = {}
    heard: dict[LeaseId, Instant | None] = {}
    """New `heard_until` of leases that are otherwise unchanged: no change rows, no revision."""
    postponed: set[LeaseId] = set()
    """Unchanged leases whose stored due time is now too early: `due_of` with the timeline is
    stored instead, also without change rows."""
    arrivals: int | None = None
    """The arrival number of the newest ticket, if there are new ones; without change rows."""
    unfinished: set[str] = set()
    """Pools in whose lines some tickets could not be tried; to be scanned again. Not stored."""
    returned: set[str] = set()
    """Pools with tickets that were passed over before: this batch scans their lines. Not stored."""
    polled: set[LeaseId] = set()
    """Pull tickets whose holders poll in this batch: they may be granted now. Not stored."""
    at_once: list[Immediate] = []
    """Requests for what is left after the lines. Not stored."""
    stopping: dict[LeaseId, StopRequest] = {}
    """Those of `leases` that are now asked to stop for a ticket. Not stored."""

    def update(self, other: "Changes") -> None:
        """Merge the changes of a later decision, which override those here."""
        self.pools.update(other.pools)
        self.leases.update(other.leases)
        for lease in other.leases:
            self.heard.pop(lease, None)
        self.slots.update(other.slots)
        self.templates.update(other.templates)
        self.outcomes.extend(other.outcomes)
        self.bookings.update(other.bookings)
        if self.outcomes:  # those of a pool go with it
            gone = {name for name, pool in other.pools.items() if pool is None}
            self.outcomes = [one for one in self.outcomes if one.pool not in gone]
        for lease, until in other.heard.items():
            changed = self.leases.get(lease)
            if changed is None:
                self.heard[lease] = until
            else:
                self.leases[lease] = structs.replace(changed, heard_until=until)
        self.postponed.update(other.postponed)
        if other.arrivals is not None:
            self.arrivals = other.arrivals
        self.unfinished.update(other.unfinished)
        self.returned.update(other.returned)
        self.polled.update(other.polled)
        self.at_once.extend(other.at_once)
        self.stopping.update(other.stopping)

    def unlogged(self) -> "Changes":
        """Return the changes that have no change rows."""
        return structs.replace(
            self, pools={}, leases={}, slots={}, templates={}, outcomes=[], bookings={}
        )

    def __bool__(self) -> bool:
        return self.is_published or bool(self.heard or self.postponed) or self.arrivals is not None

    @property
    def is_published(self) -> bool:
        """Is there anything that followers are notified of, with a revision?"""
        often = self.pools or self.leases or self.slots or self.outcomes
        return bool(often or self.templates or self.bookings)

    def stamp(self, epoch: int, revision: int) -> None:
        """Complete the token of every lease granted in this batch; until then only `n` is set."""
        for key, lease in self.leases.items():
            if lease is not None and lease.token is not None and lease.token.revision == 0:
                token = FencingToken(epoch, revision, lease.token.n)
                self.leases[key] = structs.replace(lease, token=token)


@dataclass(slots=True)
class Facts:
    """The loaded rows of a batch, as changed by its decisions so far."""

    timeline: Timeline = field(default_factory=Timeline)
    """As of this batch."""
    arrivals: int = 0
    """The arrival number of the newest ticket."""
    pools: dict[str, Pool] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Pools that this batch has deleted, although stored rows still name them."""
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    asked: dict[tuple[str, str], LeaseId] = field(default_factory=dict)
    """Of all loaded leases, which include those of `Keys.asked`."""
    slots: dict[str, dict[str, Slot]] = field(default_factory=dict)
    """All slots of every loaded pool, by pool and name; an empty dict: the pool has none. Of a pool
    that is not loaded, those in `Keys.touched`."""
    held: dict[tuple[str, str], int] = field(default_factory=dict)
    """Units that an owner occupies, by (pool, owner), for pools with a quota and `Keys.quotas`."""
    waits: dict[tuple[str, str], int] = field(default_factory=dict)
    """Waiting tickets by (pool, owner): all of the owners in `Keys.waiters` and of their projects,
    in pools where they could be too many; otherwise only what this batch has added."""
    lines: dict[str, Line] = field(default_factory=dict)
    heads: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Places of the first tickets without a booking of some lines, by pool, as stored before the
    batch."""
    templates: dict[str, Template] = field(default_factory=dict)
    """All of them, with `Keys.templates`, or if a pool of `Keys.makable` does not exist."""
    made: dict[str, int] = field(default_factory=dict)
    """How many pools there are of each of these templates."""
    due: list[LeaseId] = field(default_factory=list)
    bookings: dict[BookingId, Booking] = field(default_factory=dict)
    """Of every loaded pool those that are not over, and those of `Keys.bookings` and `booked`."""
    calls: dict[BookingId, int] = field(default_factory=dict)
    """How many tickets wait for units of a loaded booking."""
    holding: dict[str, dict[tuple[Instant | None, str], int]] = field(default_factory=dict)
    """Of every loaded pool with bookings, and those in `Keys.calendars`: the units of its leases by
    the times at which they end at the latest, and by the bookings whose they are, "" for none."""
    grants: int = 0
    """Grants in this batch so far: the `n` of the next token."""
    _grantable: dict[tuple[str, str], int] = field(default_factory=dict)
    """Counts of `grantable`, until a slot of the pool changes."""

    def apply(self, changes: Changes) -> None:
        """Make the changes of one decision visible to the next."""
        if changes.arrivals is not None:
            self.arrivals = changes.arrivals
        for name, template in changes.templates.items():
            if template is None:
                self.templates.pop(name, None)
            else:
                self.templates[name] = template
        for name, pool in changes.pools.items():
            for one, change in ((self.pools.get(name), -1), (pool, 1)):
                if one is not None and one.on_demand is not None:
                    maker = one.on_demand.template
                    self.made[maker] = self.made.get(maker, 0) + change
            if pool is None:
                self.pools.pop(name, None)
                self.gone.add(name)
            else:
                self.pools[name] = pool
                self.gone.discard(name)
                self.slots.setdefault(name, {})
        for key, lease in changes.leases.items():
            self._lease(key, lease)
        self.bookings.update(changes.bookings)
        if changes.slots:
            self._grantable.clear()
        for (pool_name, name), slot in changes.slots.items():
            named = self.slots.setdefault(pool_name, {})
            if slot is None:
                named.pop(name, None)
            else:
                named[name] = slot
        for key, until in changes.heard.items():
            self.leases[key] = structs.replace(self.leases[key], heard_until=until)

    def booked_until(self, booking: BookingId) -> Instant | None:
        """Return the service time at which a booking ends; None: it is not loaded, or cancelled."""
        found = self.bookings.get(booking)
        return None if found is None else found.until(self.timeline.skew)

    def with_pools(self, pools: dict[str, Pool]) -> "Facts":
        """Return the same facts with new pools, which have no slots, no leases and no tickets."""
        slots: dict[str, dict[str, Slot]] = {name: {} for name in pools}
        return replace(self, pools=self.pools | pools, slots=self.slots | slots)

    def grantable(self, pool: str, wanted: str = "") -> int:
        """Return how many slots of a pool tickets may get sooner or later: not drained ones.

        A drained slot that is still occupied counts, because its lease does. `wanted`: only slots
        with these labels.
        """
        key = (pool, wanted)
        found = self._grantable.get(key)
        if found is None:
            there = self.slots.get(pool, {}).values()
            found = sum(
                (slot.occupied or slot.drain is None) and suits(slot.labels, wanted)
                for slot in there
            )
            self._grantable[key] = found
        return found

    def slots_of(self, pools: Iterable[str]) -> Iterable[Slot]:
        """Yield the slots of some pools."""
        for pool in pools:
            yield from self.slots.get(pool, {}).values()

    def _lease(self, key: LeaseId, lease: Lease | None) -> None:
        before = self.leases.pop(key, None)
        if before is not None:
            self.asked.pop((before.owner, before.key), None)
        if lease is not None:
            self.leases[key] = lease
            self.asked[lease.owner, lease.key] = key
            was = None if before is None else before.state
            self.grants += lease.state == "granted" and was != "granted"
        for one, sign in ((before, -1), (lease, 1)):
            if one is None:
                continue
            if one.state == "waiting":
                for pool in set(map(_POOL, one.needs)):
                    self.waits[pool, one.owner] = self.waits.get((pool, one.owner), 0) + sign
            elif one.state == "granted":
                for need in one.needs:
                    at = (need.pool, one.owner)
                    self.held[at] = self.held.get(at, 0) + sign * need.units
            if self.holding:
                self._booked(one, sign)

    def _booked(self, lease: Lease, sign: int) -> None:
        """Keep `holding` and `calls` up to date."""
        key = (first_end(lease.hold_until, lease.stop_until), lease.booking or "")
        for need in lease.needs:
            held = self.holding.get(need.pool)
            if held is not None and lease.state == "granted":
                held[key] = held.get(key, 0) + sign * need.units
        if lease.state == "waiting" and lease.booking is not None:
            self.calls[lease.booking] = self.calls.get(lease.booking, 0) + sign


Answer = tuple[Changes, LeaseId]
"""The changes of a decision about a lease, and the id of the lease in its answer."""
