"""Bookings: a calendar of days by pool, one booking, and forms that are shown before they count.

A form for a new, changed or cancelled booking goes to a page that says what it would do; only the
form on that page does it. All times are in UTC, as on the other pages, and so are the days.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from moorage.core.errors import Code
from moorage.faces.dashboard.fields import unreadable, whole
from moorage.faces.dashboard.forms import done
from moorage.faces.dashboard.routing import ROOT, Action, Answer, Data, Entry, Page, PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.operations import admin, bookings, leases, pools
from moorage.wire.pools.bookings import Booking, BookingWindow
from moorage.wire.pools.icalendar import calendar_of

BOOKINGS = f"{ROOT}/bookings"
ONE = f"{BOOKINGS}/{{id}}"

DAYS = 7
"""Days that the calendar shows."""

READ_MAX = 1_000
"""Bookings that are read for a page, the first made first."""

CELL_MAX = 12
"""Windows that one day of a pool shows."""

POOLS_NAMED = 200
OFFERS_SHOWN = 5
TICKETS_READ = 200

Ends = tuple[datetime, datetime]
"""A start and an end."""

EVERY = {"": "once", "day": "every day", "week": "every week"}


class Shown(NamedTuple):
    """A window of a booking on one day: its times are cut at the ends of the day."""

    booking: Booking
    text: str
    state: str


class Row(NamedTuple):
    """A pool in the calendar, with what is booked on each of the days."""

    pool: str
    days: list[list[Shown]]


async def show_calendar(request: PageRequest) -> Mapping[str, Any]:
    """Return the calendar of some days."""
    first = _day(request)
    pool = request.query.get("pool", "").strip()
    found, more = await _read(request, pool)
    days = [first + timedelta(days=n) for n in range(DAYS)]
    shown = first.date()
    return {
        "rows": _rows(found, days, pool),
        "days": days,
        "before": (shown - timedelta(days=DAYS)).isoformat(),
        "after": (shown + timedelta(days=DAYS)).isoformat(),
        "from": shown.isoformat(),
        "today": request.now.astimezone(UTC).date(),
        "more": more,
        "pools": await _pools(request),
        "cell_max": CELL_MAX,
        "every": EVERY,
        "operates": request.permits(pools.PUT_POOL),
    }


async def export(request: PageRequest) -> Answer:
    """Return the bookings of the page as a calendar file."""
    found, _ = await _read(request, request.query.get("pool", "").strip())
    return Answer(calendar_of(found).encode("utf-8", "replace"), "text/calendar", "bookings.ics")


async def show_one(request: PageRequest) -> Mapping[str, Any]:
    """Return one booking, with the forms of those who may change it."""
    booking = await request.get(bookings.GET_BOOKING, request.variables["id"])
    live = booking.state in ("coming", "running")
    return {
        "title": f"Booking {booking.id[:18]}",
        "booking": booking,
        "changes": live and await _may_change(request, booking),
    }


async def show_new(request: PageRequest) -> Mapping[str, Any]:
    """Return what a new booking would be, and whether its units are free; nothing is done."""
    start, end = ends = _ends(request.query)
    wanted = _wanted(request.query, ends)
    pool = wanted["needs"][0]["pool"]
    units = wanted["needs"][0]["units"]
    free: list[tuple[datetime, datetime]] = []
    fits: bool | None = None
    if units is not None:
        fits, free = await _free(request, pool, units, start, end)
    return {
        "fields": _fields(request.query),
        "pool": pool,
        "units": units,
        "start": start,
        "end": end,
        "closure": wanted.get("closure", False),
        "repeat": wanted.get("repeat"),
        "owner": wanted.get("owner"),
        "note": wanted.get("note", ""),
        "fits": fits,
        "free": free,
        "lasts": end - start,
        "others": await _overlapping(request, [pool], ends),
        # A second click on the button is a repetition of the first one.
        "key": str(uuid4()),
    }


async def book(request: PageRequest) -> str:
    """Make a booking that a page has shown."""
    form = request.form
    if not form.get("key"):
        raise unreadable("Look at what the booking would be first.")
    wanted = _wanted(form, _ends(form))
    made = await request.ask(bookings.CREATE_BOOKING, body={**wanted, "key": f"page-{form['key']}"})
    return done(f"{BOOKINGS}/{made.id}", "booked")


async def show_change(request: PageRequest) -> Mapping[str, Any]:
    """Return what a changed booking would be; nothing is done."""
    booking = await request.get(bookings.GET_BOOKING, request.variables["id"])
    start, end = ends = _ends(request.query)
    names = [need.pool for need in booking.needs]
    fields = ("start", "end", "note")
    return {
        "title": f"Change booking {booking.id[:18]}",
        "booking": booking,
        "start": start,
        "end": end,
        "note": _changed(request.query, ends)["note"],
        "fields": {name: request.query.get(name, "") for name in fields},
        "others": await _overlapping(request, names, ends, without=booking.id),
    }


async def change(request: PageRequest) -> str:
    """Change a booking as a page has shown, unless it was changed since."""
    booking_id, form = request.variables["id"], request.form
    if not form.get("generation"):
        raise unreadable("Look at what the change would be first.")
    body = {**_changed(form, _ends(form)), "generation": whole("generation", form["generation"])}
    try:
        await request.ask(bookings.CHANGE_BOOKING, booking_id, body=body)
    except RefusedError as refused:
        if refused.code == Code.BOOKING_GENERATION:
            return done(f"{BOOKINGS}/{booking_id}", "booking-differs")
        raise
    return done(f"{BOOKINGS}/{booking_id}", "booking-changed")


async def show_cancel(request: PageRequest) -> Mapping[str, Any]:
    """Return what cancelling a booking would do; nothing is done."""
    booking = await request.get(bookings.GET_BOOKING, request.variables["id"])
    found: dict[str, str] = {}
    for need in booking.needs:
        page = await request.get(leases.LIST_LEASES, pool=need.pool, limit=TICKETS_READ)
        found |= {one.id: one.state for one in page.leases if one.booking == booking.id}
    return {
        "title": f"Cancel booking {booking.id[:18]}",
        "booking": booking,
        "windows": [one for one in booking.windows if one.end > request.now],
        "tickets": [key for key, state in found.items() if state == "waiting"],
        "leases": [key for key, state in found.items() if state == "granted"],
    }


async def cancel(request: PageRequest) -> str:
    """Cancel a booking; repeating it is harmless."""
    booking_id = request.variables["id"]
    await request.ask(bookings.CANCEL_BOOKING, booking_id)
    return done(f"{BOOKINGS}/{booking_id}", "booking-cancelled")


async def _may_change(request: PageRequest, booking: Booking) -> bool:
    if not request.permits(bookings.CHANGE_BOOKING):
        return False
    if request.permits(pools.PUT_POOL):
        return True
    return request.permits(admin.WHOAMI) and booking.owner == (
        (await request.get(admin.WHOAMI)).owner
    )


async def _pools(request: PageRequest) -> list[str]:
    return [one.name for one in (await request.recent(pools.LIST_POOLS, limit=POOLS_NAMED)).pools]


async def _read(request: PageRequest, pool: str) -> tuple[list[Booking], bool]:
    """Return bookings that are not over, of a pool or (empty) of all; are there more?"""
    page = await request.get(bookings.LIST_BOOKINGS, pool=pool or None, limit=READ_MAX)
    return page.bookings, page.next is not None


def _rows(found: Sequence[Booking], days: Sequence[datetime], pool: str) -> list[Row]:
    """Return what is booked in each pool, by day; a window that lasts over midnight is in both."""
    rows: dict[str, Row] = {}
    for booking in found:
        for window in booking.windows:
            if window.state == "given_back":
                continue
            for number, day in enumerate(days):
                shown = _on(booking, window, day)
                for need in booking.needs if shown is not None else ():
                    if pool in ("", need.pool) and shown is not None:
                        row = rows.setdefault(need.pool, Row(need.pool, [[] for _ in days]))
                        row.days[number].append(shown)
    for row in rows.values():
        for cell in row.days:
            cell.sort(key=lambda one: (one.text, one.booking.id))
    return [rows[name] for name in sorted(rows)]


def _on(booking: Booking, window: BookingWindow, day: datetime) -> Shown | None:
    """Return a window as it is on a day; None: it is on others."""
    following = day + timedelta(days=1)
    start, end = max(window.start, day), min(window.end, following)
    if start >= end:
        return None
    until = "24:00" if end == following else f"{end.astimezone(UTC):%H:%M}"
    text = f"{start.astimezone(UTC):%H:%M}–{until}"  # noqa: RUF001  # a range of times
    return Shown(booking, "all day" if text == "00:00–24:00" else text, window.state)  # noqa: RUF001  # a range of times


async def _overlapping(
    request: PageRequest, names: Sequence[str], ends: Ends, without: str = ""
) -> list[tuple[Booking, BookingWindow]]:
    """Return the first windows of other bookings of some pools that overlap a time."""
    start, end = ends
    found = {one.id: one for name in names for one in (await _read(request, name))[0]}
    return [
        (booking, window)
        for booking in found.values()
        for window in booking.windows
        if window.state != "given_back" and window.start < end and window.end > start
        if booking.id != without
    ][:CELL_MAX]


async def _free(
    request: PageRequest, pool: str, units: int, start: datetime, end: datetime
) -> tuple[bool, list[tuple[datetime, datetime]]]:
    """Return whether units are free for a whole time, and when they are as long as that instead."""
    begins = max(start, request.now)
    if end <= begins:
        raise unreadable("A booking must end in the future, and after its start.")
    asked = {"needs": [f"{pool}={units}"], "duration": (end - begins).total_seconds()}

    async def offers(until: datetime, limit: int) -> list[tuple[datetime, datetime]]:
        between = f"{begins.isoformat()}/{until.isoformat()}"
        found = await request.get(bookings.LIST_OFFERS, **asked, between=between, limit=limit)
        return [(one.start, one.end) for one in found.offers]

    if await offers(end, 1):
        return True, []
    return False, await offers(end + timedelta(days=DAYS), OFFERS_SHOWN)


def _fields(given: Mapping[str, str]) -> dict[str, str]:
    names = ("pool", "units", "start", "end", "every", "count", "note", "owner", "closure")
    return {name: given[name].strip() for name in names if given.get(name, "").strip()}


def _wanted(given: Mapping[str, str], ends: Ends) -> dict[str, Any]:
    """Return the body of a new booking from fields. Raises RefusedError: 400."""
    fields = _fields(given)
    if "pool" not in fields:
        raise unreadable("A booking needs a pool.")
    start, end = ends
    closure = fields.get("closure") == "yes"
    units = whole("units", fields["units"]) if "units" in fields else None if closure else 1
    wanted: dict[str, Any] = {
        "needs": [{"pool": fields["pool"], "units": units}],
        "start": start.isoformat(),
        "end": end.isoformat(),
        "note": fields.get("note", ""),
    }
    if fields.get("every"):
        count = whole("count", fields.get("count", ""))
        wanted["repeat"] = {"every": fields["every"], "count": count}
    if fields.get("owner"):
        wanted["owner"] = fields["owner"]
    if closure:
        wanted["closure"] = True
    return wanted


def _changed(given: Mapping[str, str], ends: Ends) -> dict[str, Any]:
    start, end = ends
    return {
        "start": start.isoformat(),
        "end": end.isoformat(),
        "note": given.get("note", "").strip(),
    }


def _ends(given: Mapping[str, str]) -> Ends:
    """Return the start and the end in fields. Raises RefusedError: 400."""
    start, end = (_time(given.get(name, ""), name) for name in ("start", "end"))
    if end <= start:
        raise unreadable("A booking must end after its start.")
    return start, end


def _time(text: str, name: str) -> datetime:
    """Return the time in a field, in UTC unless it has a zone. Raises RefusedError: 400."""
    try:
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise unreadable(f"{name} must be a time such as 2026-12-31T14:00, in UTC.") from None


def _day(request: PageRequest) -> datetime:
    """Return the first day that is shown: the one of the address, or today; in UTC."""
    text, today = request.query.get("from", "").strip(), request.now.astimezone(UTC)
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if text else today
        day - timedelta(days=DAYS)
        day + timedelta(days=2 * DAYS)
    except (ValueError, OverflowError):
        raise unreadable("from must be a day such as 2026-12-31.") from None
    return day.replace(hour=0, minute=0, second=0, microsecond=0)


ENTRIES: tuple[Entry, ...] = (
    Page(
        path=BOOKINGS,
        title="Bookings",
        template="bookings/calendar.html",
        show=show_calendar,
        needs=bookings.LIST_BOOKINGS,
    ),
    Data(path=f"{BOOKINGS}.ics", read=export),
    # Before the pages of single bookings: `new` is no id.
    Page(
        path=f"{BOOKINGS}/new",
        title="A new booking",
        template="bookings/new.html",
        show=show_new,
        live=False,
        needs=bookings.CREATE_BOOKING,
    ),
    Action(path=f"{BOOKINGS}/new", act=book),
    Page(
        path=ONE,
        title="Booking",
        template="bookings/one.html",
        show=show_one,
        personal=True,
        needs=bookings.GET_BOOKING,
    ),
    Page(
        path=f"{ONE}/change",
        title="Change a booking",
        template="bookings/change.html",
        show=show_change,
        live=False,
        needs=bookings.CHANGE_BOOKING,
    ),
    Action(path=f"{ONE}/change", act=change),
    Page(
        path=f"{ONE}/cancel",
        title="Cancel a booking",
        template="bookings/cancel.html",
        show=show_cancel,
        live=False,
        needs=bookings.CANCEL_BOOKING,
    ),
    Action(path=f"{ONE}/cancel", act=cancel),
)
