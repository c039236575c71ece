"""Bookings as a calendar file, read by a library that calendar programs use."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import Calendar, Event

from moorage.wire.pools.bookings import BookedUnits, Booking, BookingWindow
from moorage.wire.pools.icalendar import calendar_of
from tests.faces.v1.admission.test_bookings import book, put
from tests.faces.v1.native import Native

START = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)
ID = "01a22148-89d2-7b6e-a327-7cf77a69bc9d"


def booked(**more: Any) -> Booking:
    """Return a booking with one window."""
    window = BookingWindow(start=START, end=START + timedelta(hours=8), state="coming")
    known: dict[str, Any] = {
        "id": ID,
        "key": "k",
        "owner": "alice",
        "needs": [BookedUnits(pool="clusters", units=2)],
        "state": "coming",
        "start": START,
        "end": window.end,
        "next": window,
        "windows": [window],
        "repeat": None,
        "lead": 0.0,
        "no_show": None,
        "note": "",
        "closure": False,
        "forced": False,
        "generation": 3,
        "created_at": START - timedelta(days=2),
        "updated_at": START - timedelta(days=1),
        "cancelled_at": None,
    }
    return Booking(**(known | more))


def events(text: str) -> list[Event]:
    """Return the events of a calendar file."""
    return list(Calendar.from_ical(text).walk("VEVENT"))


def one(booking: Booking) -> Event:
    """Return the only event of a booking."""
    (found,) = events(calendar_of([booking]))
    return found


def test_a_window_is_an_event() -> None:
    """With what RFC 5545 requires, in UTC."""
    found = one(booked(note="release tests"))
    assert found["UID"] == f"{ID}-20260328T220000Z"
    assert found.decoded("DTSTAMP") == START - timedelta(days=1)
    assert found.decoded("DTSTART") == START
    assert found.decoded("DTEND") == START + timedelta(hours=8)
    assert found["SUMMARY"] == "alice: 2 of clusters (release tests)"
    assert (found["STATUS"], found["SEQUENCE"]) == ("CONFIRMED", 2)
    assert found["CATEGORIES"].cats == ["BOOKING"]


def test_a_closure_of_several_pools() -> None:
    """It says so; the control is above."""
    needs = [BookedUnits(pool="a", units=None), BookedUnits(pool="b", units=1)]
    found = one(booked(closure=True, needs=needs))
    assert found["SUMMARY"] == "closed: all of a and 1 of b"
    assert found["CATEGORIES"].cats == ["CLOSURE"]


def test_each_window_has_its_own_id() -> None:
    """Those that were given back are left out."""
    days = [START + timedelta(days=n) for n in range(3)]
    states = ("over", "given_back", "coming")
    windows = [
        BookingWindow(start=day, end=day + timedelta(hours=1), state=state)
        for day, state in zip(days, states, strict=True)
    ]
    found = events(calendar_of([booked(windows=windows)]))
    assert [event.decoded("DTSTART") for event in found] == [days[0], days[2]]
    assert len({event["UID"] for event in found}) == 2


def test_a_cancelled_booking_is_shown_as_such() -> None:
    """Programs that know the event strike it through, or remove it."""
    assert one(booked(cancelled_at=START))["STATUS"] == "CANCELLED"


def test_other_zones_are_written_in_utc() -> None:
    """A program shows them in its own."""
    zone = datetime.fromisoformat("2026-03-28T23:30:00+05:30")
    window = BookingWindow(start=zone, end=zone + timedelta(hours=1), state="coming")
    assert "DTSTART:20260328T180000Z\r\n" in calendar_of([booked(windows=[window])])


def test_a_window_of_less_than_a_second_ends_after_its_start() -> None:
    """RFC 5545, 3.6.1: the end must be later than the start."""
    window = BookingWindow(start=START, end=START + timedelta(microseconds=1), state="coming")
    found = one(booked(windows=[window]))
    assert found.decoded("DTEND") - found.decoded("DTSTART") == timedelta(seconds=1)


def test_no_bookings_are_a_calendar() -> None:
    """Without events, and in CRLF."""
    text = calendar_of([])
    assert events(text) == []
    assert text.startswith("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n")
    assert text.endswith("END:VCALENDAR\r\n")


@pytest.mark.parametrize(
    "note",
    [
        "a;b,c\\n\\\\",
        "two\r\nlines\rand\nmore",
        "END:VEVENT\r\nBEGIN:VEVENT\r\nUID:forged",
        "ü" * 200,
        "\U0001f6a2" * 80,
        '"quoted": a:b',
    ],
)
def test_texts_are_escaped_and_folded(note: str) -> None:
    """No text makes another property, and no line is longer than 75 bytes."""
    text = calendar_of([booked(note=note)])
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    (found,) = events(text)
    lines = note.replace("\r\n", "\n").replace("\r", "\n")
    assert found["SUMMARY"] == f"alice: 2 of clusters ({lines})"


@settings(max_examples=200, deadline=None)
@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t\\;,:"), max_size=300
    )
)
def test_any_text_is_read_as_it_was(note: str) -> None:
    """Whatever it contains, and wherever its line is folded."""
    booking = dataclasses.replace(booked(), note=f"x{note}x")
    text = calendar_of([booking])
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert one(booking)["SUMMARY"] == f"alice: 2 of clusters (x{note}x)"


def test_the_file_over_http(native: Native) -> None:
    """With the windows of one pool; a reader may have it."""
    pool = f"p{uuid4().hex[:8]}"
    put(native, pool, limit=2)
    made = book(native, {"pool": pool}, repeat={"every": "day", "count": 3}, note="a; b").body
    reader = native.token("reader")
    answer = native.ask("GET", f"/v1/bookings?format=ics&pool={pool}", token=reader)
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    found = events(answer.body.decode())
    assert [event["UID"].startswith(f"{made['id']}-2") for event in found] == [True] * 3
    assert {event["SUMMARY"] for event in found} == {f"admin: 1 of {pool} (a; b)"}
    for refused in (f"format=ics&cursor={made['id']}", "format=xml"):
        assert native.ask("GET", f"/v1/bookings?{refused}").status == 400
