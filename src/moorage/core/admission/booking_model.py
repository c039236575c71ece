"""Bookings, as they are stored."""

from collections.abc import Iterable

from msgspec import Struct

from moorage.core.admission.model import Need
from moorage.core.clock import Instant
from moorage.core.ids import BookingId
from moorage.core.limits import MOVED_PRIORITY_MAX


class Window(Struct, frozen=True, order=True, array_like=True):
    """From when until when, by the wall clock; the end is not part of it."""

    start: Instant
    end: Instant


class Booking(Struct, frozen=True):
    """Units of pools that are kept for one owner, or closed, in one window or in several.

    Times are by the wall clock, because calendars are; durations are microseconds.
    """

    id: BookingId
    owner: str
    key: str
    """The idempotency key, unique per owner."""
    digest: str
    """Of the request; the same key with another digest is refused."""
    needs: tuple[Need, ...]
    """By pool name, each pool once. `units` 0, of a closure: all that the pool has."""
    windows: tuple[Window, ...]
    """Ascending, and apart from each other."""
    closure: bool
    """Nobody may use its units: its pools have that many less in its windows."""
    lead: int
    """How long before each start its units are kept already."""
    no_show: int | None
    """How long after a start its units are kept while nobody has asked for any; None: to the
    end."""
    note: str
    """What it is for, for people."""
    rule: str
    """What its windows were made of, as it was asked for; opaque here, empty: one window."""
    forced: bool
    """It was accepted although its units are not free."""
    generation: int
    created_at: Instant
    updated_at: Instant
    taken_at: Instant | None = None
    """The start of the last window in which a lease got units of it."""
    given_back: tuple[Instant, ...] = ()
    """The starts of windows in which nobody came, so others may have their units."""
    cancelled_at: Instant | None = None

    @property
    def coming(self) -> tuple[Window, ...]:
        """Its windows without those that were given back; none if it was cancelled."""
        if self.cancelled_at is not None:
            return ()
        if not self.given_back:
            return self.windows
        given = frozenset(self.given_back)
        return tuple(one for one in self.windows if one.start not in given)

    @property
    def ends_at(self) -> Instant:
        """The end of its last window."""
        return self.windows[-1].end

    def until(self, skew: int) -> Instant | None:
        """Return the service time at which it ends; None: it was cancelled, or given back."""
        return Instant(self.coming[-1].end + skew) if self.coming else None

    def window_at(self, wall: int) -> Window | None:
        """Return the window in which its owner may have its units at a time; None: none."""
        return next((one for one in self.coming if one.start <= wall < one.end), None)

    def keeps_at(self, wall: int) -> bool:
        """Are its units kept at a time?"""
        return any(one.start - self.lead <= wall < one.end for one in self.coming)

    def units_in(self, pool: str, limit: int) -> int:
        """Return how many units of a pool with this limit it keeps."""
        units = sum(need.units for need in self.needs if need.pool == pool)
        whole = any(need.pool == pool and need.units == 0 for need in self.needs)
        return limit if whole else units


OVER = "its booking is over"
"""Detail of the end of a ticket that waited for units of a booking."""

CANCELLED = "its booking was cancelled"
"""The same, if somebody has cancelled the booking."""

BOOKED_PRIORITY = MOVED_PRIORITY_MAX + 1
"""The priority of tickets with a booking: ahead of all others, also of moved ones."""


def of_pool(bookings: Iterable[Booking], pool: str) -> list[Booking]:
    """Return those of some bookings that keep units of a pool and were not cancelled."""
    return [
        one
        for one in bookings
        if one.cancelled_at is None and any(need.pool == pool for need in one.needs)
    ]
