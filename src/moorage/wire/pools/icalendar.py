"""Bookings as a calendar file, which calendar programs show: iCalendar, RFC 5545.

Each window is an event of its own, because the windows of a booking are what counts: its rule was
applied once, when it was made. Times are in UTC. There is no METHOD, so DTSTAMP says when a booking
was last changed (3.8.7.2): a file changes only if a booking does.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.wire.pools.bookings import BookedUnits, Booking, BookingWindow

LINE_BYTES = 75
"""Of a line without its end (3.1)."""

HEAD = (
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Moorage//Bookings//EN",
    "CALSCALE:GREGORIAN",
    "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
)
"""The interval is from RFC 7986 (5.7)."""


def calendar_of(bookings: Iterable[Booking]) -> str:
    """Return the calendar file of bookings: one event for each window, cancelled ones as such.

    A window that was given back is none any more.
    """
    lines = [*HEAD]
    for booking in bookings:
        for window in booking.windows:
            if window.state != "given_back":
                lines += _event(booking, window)
    lines.append("END:VCALENDAR")
    return "".join(f"{line}\r\n" for one in lines for line in _folded(one))


def summary_of(booking: Booking) -> str:
    """Return what a booking is, in a line: `closed: 2 of clusters and all of licences (note)`."""
    units = " and ".join(map(_units, booking.needs))
    who = "closed" if booking.closure else booking.owner
    return f"{who}: {units} ({booking.note})" if booking.note else f"{who}: {units}"


def _units(need: BookedUnits) -> str:
    return f"all of {need.pool}" if need.units is None else f"{need.units} of {need.pool}"


def _event(booking: Booking, window: BookingWindow) -> Iterator[str]:
    start = _time(window.start)
    yield "BEGIN:VEVENT"
    yield f"UID:{booking.id}-{start}"
    yield f"DTSTAMP:{_time(booking.updated_at)}"
    yield f"CREATED:{_time(booking.created_at)}"
    yield f"LAST-MODIFIED:{_time(booking.updated_at)}"
    yield f"SEQUENCE:{booking.generation - 1}"
    yield f"DTSTART:{start}"
    yield f"DTEND:{_time(_end(window))}"
    yield f"SUMMARY:{_escaped(summary_of(booking))}"
    yield f"CATEGORIES:{'CLOSURE' if booking.closure else 'BOOKING'}"
    yield f"STATUS:{'CONFIRMED' if booking.cancelled_at is None else 'CANCELLED'}"
    yield "END:VEVENT"


def _end(window: BookingWindow) -> datetime:
    """Return an end in whole seconds, which is later than the start (3.6.1)."""
    return window.end + timedelta(microseconds=-window.end.microsecond % 1_000_000)


def _time(time: datetime) -> str:
    """Return a time in UTC (3.3.5, form 2): 20261231T235959Z. A year has four digits."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    one = aware.astimezone(timezone.utc)
    return f"{one.year:04}{one.month:02}{one.day:02}T{one.hour:02}{one.minute:02}{one.second:02}Z"


def _escaped(text: str) -> str:
    """Return a value of the type TEXT (3.3.11), without control characters."""
    escaped = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    lines = escaped.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n")
    return "".join(one for one in lines if one == "\t" or not (one < " " or one == "\x7f"))


def _folded(line: str) -> Iterator[str]:
    """Yield the parts of a line, each of at most `LINE_BYTES`; no character is divided."""
    part, size = "", 0
    for one in line:
        width = len(one.encode("utf-8", "surrogatepass"))
        if size + width > LINE_BYTES:
            yield part
            part, size = " ", 1
        part += one
        size += width
    yield part
