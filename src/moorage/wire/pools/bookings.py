"""Bookings: units of pools that are kept for somebody, or closed, on a calendar.

Times are by the calendar of people: the wall clock. All durations are in seconds.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.dataclass import dataclass
from moorage.wire.pages import PageAsked

LEAD_SECONDS = 0.0
NO_SHOW_SECONDS = 900.0
"""The default of `no_show`: a quarter of an hour."""

BookingState = Literal["coming", "running", "over", "cancelled"]
WindowState = Literal["coming", "running", "taken", "given_back", "over"]
BookingFormat = Literal["json", "ics"]
Every = Literal["day", "week"]
Weekday = Literal["mo", "tu", "we", "th", "fr", "sa", "su"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedUnits:
    """Units of one pool; null, in a closure: all that it has."""

    pool: str
    units: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """How a booking repeats: at the same local times in `zone`, a name such as Europe/Berlin.

    Every `interval` days, or every `interval` weeks on `days` (default: that of the start). It ends
    after `count` windows, or with the last day `until`, written 2026-12-31; one of them must be
    given, and there are at most 366 windows. On the days in `skip` there is none.

    A local time that the clock skips counts as the time that follows by as much; one that it shows
    twice counts as the first.
    """

    every: Every
    interval: int = 1
    days: list[Weekday] = field(default_factory=list)
    zone: str = "UTC"
    until: str | None = None
    count: int | None = None
    skip: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingWanted:
    """A request for a booking, from `start` until `end`, once or in a series.

    `key` makes the request safe to repeat: the same key and body give the same booking. A booking
    is accepted if and only if its units are free in all its windows. Leases count until the ends of
    their holds, and those without an end for ever; tickets that wait do not count.

    Its units are kept from `lead` before each start, and given back if nobody has asked for any
    `no_show` after it; null: never. A lease uses them with `booking`, which is the id of this one.

    Operators may also set these: `owner` books for somebody else. `closure`: nobody has the units;
    leases that have started go on. `force`: accept it although units are not free.
    """

    needs: list[BookedUnits]
    key: str
    start: datetime
    end: datetime
    repeat: Repeat | None = None
    lead: float = LEAD_SECONDS
    no_show: float | None = NO_SHOW_SECONDS
    note: str = ""
    owner: str | None = None
    closure: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingChange:
    """What of a booking to change; null: that stays.

    `start` and `end` are those of its first window. `skip` are further days without a window, of a
    series. `generation`: refuse if the booking has another one.
    """

    needs: list[BookedUnits] | None = None
    start: datetime | None = None
    end: datetime | None = None
    skip: list[str] = field(default_factory=list)
    note: str | None = None
    force: bool = False
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingWindow:
    """One window. taken: a lease has had units in it; given_back: nobody came in time."""

    start: datetime
    end: datetime
    state: WindowState


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A booking. `start` is that of its first window, `end` that of its last.

    `next` is the window that runs, or else the next one; null: none is to come.
    """

    id: str
    key: str
    owner: str
    needs: list[BookedUnits]
    state: BookingState
    start: datetime
    end: datetime
    next: BookingWindow | None
    windows: list[BookingWindow]
    repeat: Repeat | None
    lead: float
    no_show: float | None
    note: str
    closure: bool
    forced: bool
    generation: int
    created_at: datetime
    updated_at: datetime
    cancelled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingPage:
    """Bookings, those first that were made first, and the cursor of the next page.

    `as_of` is the cursor of the revision at which they were read, for `/v1/watch`.
    """

    bookings: list[Booking]
    next: str | None
    as_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingsAsked(PageAsked):
    """Which bookings to list: of a pool, of an owner, or of the caller (`mine`).

    With `over` also those that are over or cancelled. `format` ics: all of them at once as a
    calendar file (iCalendar, RFC 5545), each window as an event; then there are no pages.
    """

    pool: str | None = None
    owner: str | None = None
    mine: bool = False
    over: bool = False
    format: BookingFormat = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffersAsked:
    """Units that are wanted for `duration` seconds between two times, START/END in RFC 3339.

    `needs` is POOL or POOL=UNITS, and may be repeated: all of them at once. Without `between`: in
    the next seven days. `limit` is at most 50.
    """

    needs: list[str] = field(default_factory=list)
    duration: float = 3600.0
    between: str | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingOffer:
    """The units are free from `start` until `end`, without regard to tickets that wait."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingOffers:
    """The first windows in which units are free for as long as asked, each as long as it can be."""

    offers: list[BookingOffer]
