"""Pools and leases as faces see them: with times by the wall clock."""

from typing import NamedTuple

from msgspec import Struct

from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.model import Lease, Pool, is_unheard, stops_at
from moorage.core.admission.units import Figures
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.feed.watch import Cursor
from moorage.store.admission.contents import Sum


class LeaseTimes(NamedTuple):
    """When what happens to a lease or ticket, by the wall clock; None: never, or not yet."""

    asked_at: Instant
    granted_at: Instant | None
    expires_at: Instant | None
    """When it ends unless it is renewed, or confirmed.

    None: a ticket, an ended lease, or one that needs neither.
    """
    hold_until: Instant | None
    """When its hold ends; None: it has none, or is a ticket."""
    ended_at: Instant | None
    stop_until: Instant | None = None
    """When it ends because its holder is asked to stop; None: it is not."""


class LeaseView(Struct, frozen=True):
    """A lease or ticket as of a time."""

    lease: Lease
    when: When
    standing: Standing | None = None
    """Position and reason, if it is a waiting ticket."""
    confirmed: bool = False
    """Is this what its holder reads, which confirms its grant? Then it has its TTL, or none."""
    awaited: int = 0
    """Of a lease that is kept for inspection: the tickets in the lines of its pools."""

    @property
    def unheard(self) -> bool:
        """Was it not renewed in time but is kept, so that it still occupies units?"""
        return is_unheard(self.lease, self.when.moment)

    def wall(self, at: Instant) -> Instant:
        """Return a service time by the wall clock."""
        return Instant(at + self.when.wall - self.when.moment.at)

    def times(self) -> LeaseTimes:
        """Return when what happens to it."""
        lease, when = self.lease, self.when
        granted, hold, ended = lease.granted_at, lease.hold_until, lease.ended_at
        stop = lease.stop_until
        if stop is not None:
            stop = stops_at(lease, when.moment.at - when.moment.alive)
        back = when.wall - when.moment.at  # from service time to the wall clock
        if granted is not None:
            granted = Instant(granted + back)
        ends: int | None = None
        if self.confirmed:
            if lease.ttl is not None and granted is not None:
                ends = granted + lease.ttl
        elif lease.state == "granted" and lease.heard_until is not None:
            ends = lease.heard_until + when.wall - when.moment.alive
        return LeaseTimes(
            Instant(lease.asked_at + back),
            granted,
            None if ends is None else Instant(ends),
            None if hold is None else Instant(hold + back),
            None if ended is None else Instant(ended + back),
            None if stop is None else Instant(stop + back),
        )


class OverstayView(Struct, frozen=True):
    """A lease that a line waits behind for too long."""

    lease: LeaseId
    holder: str
    """As people know the holder, see `wire.labels`."""
    granted_at: Instant
    """By the wall clock."""
    usual: int
    """Microseconds that leases of the pool last at most, as a rule."""
    blocks: bool
    """All leases of the pool are that old: the line does not move."""


class PoolView(Struct, frozen=True):
    """A pool with its current figures."""

    pool: Pool
    slots: dict[str, int]
    """Number of its slots by state; empty: it has none."""
    figures: Figures
    unheard: int
    """Leases that occupy units although not renewed in time, as of at most a second ago."""
    next_grant_at: Instant | None
    """When pacing permits the next grant, by the wall clock; None: now."""
    first: LeaseView | None
    """The first ticket of its line and why it waits, at most a second old; None: an empty line."""
    paused_until: Instant | None = None
    """When its pause ends by itself, by the wall clock; None: it does not."""
    overstay: OverstayView | None = None
    """The lease that its line waits behind for too long, as of at most a second ago."""
    back: int = 0
    """Microseconds from service time to the wall clock."""
    at: Instant = Instant(0)
    """When it was read, in service time."""


class OutcomeCount(Struct, frozen=True):
    """Outcomes of the starts at one limit and one number of starts per minute.

    The latter is None if it is unknown, because their leases have been deleted.
    """

    limit: int
    starts_per_minute: int | None
    ok: int
    failed: int
    throttled: int


class Ages(Struct, frozen=True):
    """How old what is oldest in a pool is, in microseconds."""

    ticket: int = 0
    """Since its request; 0: no ticket waits."""
    lease: int = 0
    """Since its grant; 0: no lease has units."""


class ReportView(Struct, frozen=True):
    """Statistics for choosing a pool's limit. Each list: median, 90th, 99th percentile."""

    pool: str
    asked: int
    """Microseconds up to now that it was to cover."""
    covered: int
    """Microseconds that it covers: leases that ended before that are not kept, or too many."""
    cut: bool
    """Are there too many? Then it covers the newest ones."""
    leases: int
    waited: tuple[int, int, int] | None
    """Microseconds from the request to the grant."""
    held: tuple[int, int, int] | None
    """Microseconds from the grant to the end."""
    gave_up: int
    """Tickets whose clients stopped waiting, or were gone."""
    gave_up_after: tuple[int, int, int] | None
    """Microseconds from their request to their end."""
    causes: dict[str, int]
    outcomes: list[OutcomeCount]


class ContentsView(Struct, frozen=True):
    """A pool and what is in it, as of one revision."""

    as_of: Cursor
    pool: PoolView
    leases: list[LeaseView]
    tickets: list[LeaseView]
    granted: Sum
    waiting: Sum
