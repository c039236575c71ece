"""Bookings: make, list, change and cancel them; windows in which units are free."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from moorage.core.admission.booking_model import Booking, Window
from moorage.core.admission.calendar.bookings import Booker, not_found
from moorage.core.admission.model import Need
from moorage.core.clock import DAY, SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId, is_normal
from moorage.core.limits import CALENDAR_EVENTS_MAX, PAGE_MAX
from moorage.core.wildcards import is_entry
from moorage.faces.streaming import Stream
from moorage.faces.v1 import authorization
from moorage.faces.v1.admission.leases import OWNER_LENGTH_MAX
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.roles import Role, standing
from moorage.service.admission.booking_cases import (
    BookingAlter,
    BookingCancel,
    BookingCreate,
    BookingView,
    booking_id_new,
)
from moorage.service.admission.calendars import Calendars
from moorage.service.values import instant_of, microseconds, seconds_of, time_of, time_or_none
from moorage.wire.operations import bookings as operations
from moorage.wire.pools import bookings as wire
from moorage.wire.pools.icalendar import calendar_of

AHEAD = 7 * DAY
"""How far ahead free windows are sought, unless the caller says."""


async def create(request: Request[wire.BookingWanted, None]) -> wire.Booking:
    """Book units."""
    wanted, owner = request.body, request.owner
    if wanted.owner is not None and wanted.owner != owner:
        authorization.check_role(request.role, Role.OPERATOR, "booking for another owner")
        if not is_entry(wanted.owner, OWNER_LENGTH_MAX):
            raise Error(Code.INVALID, f"{wanted.owner!r} is not an owner.")
        owner = wanted.owner
    case = BookingCreate(_booker(request), request.actor, booking_id_new(), owner, wanted)
    return booking_shown(await request.service.admission.calendars.change(case))


async def page(request: Request[None, wire.BookingsAsked]) -> wire.BookingPage | Stream:
    """Return a page of bookings, or all of them as a calendar file."""
    asked = request.parameters
    owner = request.owner if asked.mine else asked.owner
    if asked.mine and asked.owner not in (None, owner):
        raise Error(Code.INVALID, f"mine means the owner '{owner}': omit either owner or mine.")
    if asked.format == "ics":
        if asked.cursor is not None:
            raise Error(Code.INVALID, "A calendar file has no pages: omit cursor.")
        found = await _all(request.service.admission.calendars, asked.pool, owner, over=asked.over)
        return Stream(f"{operations.CALENDAR}; charset=utf-8", _pieces(found))
    views, following, as_of = await request.service.admission.calendars.page(
        asked.cursor, asked.limit, pool=asked.pool, owner=owner, over=asked.over
    )
    shown = [booking_shown(view) for view in views]
    return wire.BookingPage(bookings=shown, next=following, as_of=str(as_of))


async def _all(
    calendars: Calendars, pool: str | None, owner: str | None, *, over: bool
) -> list[wire.Booking]:
    """Return all such bookings. Raises LIMIT_EXCEEDED: they have too many windows."""
    found: list[wire.Booking] = []
    windows, cursor = 0, None
    while True:
        views, cursor, _ = await calendars.page(cursor, PAGE_MAX, pool=pool, owner=owner, over=over)
        found += map(booking_shown, views)
        windows += sum(len(view.booking.windows) for view in views)
        if windows > CALENDAR_EVENTS_MAX:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"A calendar file has at most {CALENDAR_EVENTS_MAX} events: name a pool or an"
                " owner.",
            )
        if cursor is None:
            return found


async def _pieces(found: list[wire.Booking]) -> AsyncGenerator[bytes, None]:
    yield (await asyncio.to_thread(calendar_of, found)).encode("utf-8", "replace")


async def read(request: Request[None, None]) -> wire.Booking:
    """Return one booking."""
    return booking_shown(await request.service.admission.calendars.booking(_id(request)))


async def change(request: Request[wire.BookingChange, None]) -> wire.Booking:
    """Change a booking."""
    wanted = request.body
    if wanted.force:
        authorization.check_role(request.role, Role.OPERATOR, "force")
    pools = frozenset(one.pool for one in wanted.needs or [])
    case = BookingAlter(_booker(request), request.actor, _id(request), wanted, pools)
    return booking_shown(await request.service.admission.calendars.change(case))


async def cancel(request: Request[None, None]) -> wire.Booking:
    """Cancel a booking."""
    case = BookingCancel(_booker(request), request.actor, _id(request))
    return booking_shown(await request.service.admission.calendars.change(case))


async def offers(request: Request[None, wire.OffersAsked]) -> wire.BookingOffers:
    """Return windows in which units are free."""
    asked = request.parameters
    needs = [_need(text) for text in asked.needs]
    lasts = microseconds("duration", asked.duration)
    found = await request.service.admission.calendars.offers(
        needs, lasts, _between(asked.between), AHEAD, asked.limit
    )
    return wire.BookingOffers(
        offers=[wire.BookingOffer(start=time_of(one.start), end=time_of(one.end)) for one in found]
    )


HANDLERS: Handlers = {
    operations.CREATE_BOOKING: create,
    operations.LIST_BOOKINGS: page,
    operations.GET_BOOKING: read,
    operations.CHANGE_BOOKING: change,
    operations.CANCEL_BOOKING: cancel,
    operations.LIST_OFFERS: offers,
}


def booking_shown(view: BookingView) -> wire.Booking:
    """Convert a booking to its wire form."""
    one, wall = view.booking, view.when.wall
    windows = [_window_shown(one, window, wall) for window in one.windows]
    ahead = [shown for shown in windows if shown.state in ("coming", "running", "taken")]
    upcoming = [shown for shown in ahead if shown.end > time_of(wall)]
    return wire.Booking(
        id=one.id,
        key=one.key,
        owner=one.owner,
        needs=[wire.BookedUnits(pool=need.pool, units=need.units or None) for need in one.needs],
        state=_state(one, wall),
        start=time_of(one.windows[0].start),
        end=time_of(one.ends_at),
        next=upcoming[0] if upcoming and one.cancelled_at is None else None,
        windows=windows,
        repeat=view.repeat,
        lead=one.lead / SECOND,
        no_show=seconds_of(one.no_show),
        note=one.note,
        closure=one.closure,
        forced=one.forced,
        generation=one.generation,
        created_at=time_of(one.created_at),
        updated_at=time_of(one.updated_at),
        cancelled_at=time_or_none(one.cancelled_at),
    )


def _state(booking: Booking, wall: Instant) -> wire.BookingState:
    if booking.cancelled_at is not None:
        return "cancelled"
    if booking.ends_at <= wall:
        return "over"
    return "running" if booking.window_at(wall) is not None else "coming"


def _window_shown(booking: Booking, window: Window, wall: Instant) -> wire.BookingWindow:
    state: wire.WindowState = "coming"
    if window.start in booking.given_back:
        state = "given_back"
    elif booking.taken_at == window.start:
        state = "taken"
    elif window.end <= wall:
        state = "over"
    elif window.start <= wall:
        state = "running"
    return wire.BookingWindow(start=time_of(window.start), end=time_of(window.end), state=state)


def _booker(request: Request[Any, Any]) -> Booker:
    return Booker(request.owner, standing(request.actor.role))


def _id(request: Request[Any, Any]) -> BookingId:
    text = request.variables["id"].lower()
    if not is_normal(text):
        raise not_found(text)
    return BookingId(text)


def _need(text: str) -> Need:
    """Read POOL or POOL=UNITS. Raises `Error`: INVALID."""
    pool, equals, units = text.partition("=")
    if equals and not (units.isascii() and units.isdigit() and len(units) <= 10):
        raise Error(Code.INVALID, f"needs must be POOL or POOL=UNITS, not {text!r}.")
    return Need(pool, int(units) if equals else 1)


def _between(text: str | None) -> tuple[Instant | None, Instant | None]:
    """Read START/END. Raises `Error`: INVALID."""
    if text is None:
        return None, None
    start, _, end = text.partition("/")
    try:
        return (
            instant_of("between", datetime.fromisoformat(start)),
            instant_of("between", datetime.fromisoformat(end)),
        )
    except ValueError:
        raise Error(
            Code.INVALID, f"between must be two times in RFC 3339, START/END, not {text!r}."
        ) from None
