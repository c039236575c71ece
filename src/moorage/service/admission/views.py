"""Pools and leases as faces see them: with times by the wall clock."""

from msgspec import Struct

from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.model import Lease, Pool, is_unheard, record_age
from moorage.core.admission.units import Figures
from moorage.core.clock import Instant
from moorage.core.service_time import When
from moorage.service.feed.watch import Cursor
from moorage.store.admission.contents import Sum


class LeaseView(Struct, frozen=True):
    """A lease or ticket as of a time. All times but those inside `lease` are by the wall clock."""

    lease: Lease
    when: When
    standing: Standing | None = None
    """Position and reason, if it is a waiting ticket."""
    confirmed: bool = False
    """Is this what its holder reads, which confirms its grant? Then it has its TTL, or none."""

    @property
    def asked_at(self) -> Instant:
        """When it was requested."""
        return Instant(self.lease.asked_at + self._back)

    @property
    def granted_at(self) -> Instant | None:
        """When it was granted; None: never."""
        at = self.lease.granted_at
        return None if at is None else Instant(at + self._back)

    @property
    def expires_at(self) -> Instant | None:
        """When it ends unless it is renewed, or confirmed.

        None: a ticket, an ended lease, or one that needs neither.
        """
        if self.confirmed:
            ttl, granted_at = self.lease.ttl, self.granted_at
            return None if ttl is None or granted_at is None else Instant(granted_at + ttl)
        until = self.lease.heard_until
        if until is None or self.lease.state != "granted":
            return None
        return Instant(until + self.when.wall - self.when.moment.alive)

    @property
    def hold_until(self) -> Instant | None:
        """When its hold ends; None: it has none, or is a ticket."""
        at = self.lease.hold_until
        return None if at is None else Instant(at + self._back)

    @property
    def ended_at(self) -> Instant | None:
        """When it ended; None: it has not."""
        at = self.lease.ended_at
        return None if at is None else Instant(at + self._back)

    @property
    def unheard(self) -> bool:
        """Was it not renewed in time but is kept, so that it still occupies units?"""
        return is_unheard(self.lease, self.when.moment)

    @property
    def record_age(self) -> int | None:
        """Microseconds of service time since its record was written, or else since its grant."""
        return record_age(self.lease, self.when.moment.at)

    @property
    def _back(self) -> int:
        """From service time to the wall clock."""
        return self.when.wall - self.when.moment.at


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
