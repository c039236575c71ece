"""Bounds of what one caller may book, and of what an answer about bookings costs."""

import sys
from typing import Any

import pytest

from moorage.core.admission.booking_model import Window
from moorage.core.admission.calendar.bookings import Booker, offers
from moorage.core.admission.model import Need
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.errors import Code
from tests.core.admission.build import START, Refused, World

USER = Booker("me", frozenset({"user"}))


def world(limit: int) -> World:
    """Return a world with a pool in which users may book."""
    made = World()
    made.pool("p", limit, ttl=HOUR, book_ahead=1000 * HOUR, book_hours=3)
    return made


def test_the_lead_of_a_booking_counts_as_booked() -> None:
    """Nobody else has the units then, so a lead without a price would keep them for weeks."""
    w = world(limit=1)
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("b", {"p": 1}, (100 * 3600, 100 * 3600 + 60), by=USER, lead=99 * HOUR)
    w.book("control", {"p": 1}, (100 * 3600, 100 * 3600 + 60), by=USER, lead=2 * HOUR)


def test_the_lead_counts_once_where_windows_meet() -> None:
    """Units that are kept from one window to the next are kept once."""
    w = world(limit=1)
    windows = [(n * 600, n * 600 + 60) for n in range(1, 17)]  # 16 windows in less than 3 hours
    w.book("b", {"p": 1}, *windows, by=USER, lead=HOUR)


def owned(owner: str) -> Any:
    return {"by": Booker(owner, frozenset({"user"})), "owner": owner}


@pytest.mark.parametrize(("one", "other"), [("me", "me"), ("ours/me", "ours/you")])
def test_nobody_takes_all_bookings_of_a_pool(one: str, other: str) -> None:
    """Short bookings cost next to nothing; the owners of one project count together."""
    w = world(limit=300)
    for n in range(100):
        w.book(f"b{n}", {"p": 1}, (100, 101), **owned(one if n % 2 else other))
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("more", {"p": 1}, (100, 101), **owned(one))
    w.book("of others", {"p": 1}, (100, 101), **owned("theirs/ann"))
    w.book("an operator's", {"p": 1}, (100, 101))


def test_nobody_takes_all_windows_of_a_pool() -> None:
    """A booking has up to 366 windows, so three of them are more than one owner may have."""
    w = world(limit=300)
    windows = [(100 + n, 100.5 + n) for n in range(366)]
    w.book("a", {"p": 1}, *windows, by=USER)
    w.book("b", {"p": 1}, *windows, by=USER)
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("c", {"p": 1}, *windows, by=USER)
    w.book("c", {"p": 1}, *windows, **owned("theirs/ann"))


def lines_run(w: World, pools: list[str], seconds: int) -> int:
    """Return how many lines of Python an answer about free windows takes."""
    ran = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return trace

    within = Window(Instant(START), Instant(START + seconds * SECOND))
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = offers(w.facts, w.moment.at, [Need(one, 1) for one in pools], SECOND, within, 50)
    finally:
        sys.settrace(before)
    assert len(found) == 50
    return ran


def test_offers_cost_as_much_as_there_are_windows() -> None:
    """Twice the windows take about twice the time, not four times: others wait meanwhile."""
    costs = []
    for windows in (150, 300):
        w = World()
        for pool in ("p", "q", "r"):
            w.pool(pool, 1, ttl=HOUR)
            spans = [(n * 10, n * 10 + 5) for n in range(1, windows + 1)]
            w.book(pool, {pool: 1}, *spans)
        costs.append(lines_run(w, ["p", "q", "r"], 10 * windows))
    assert costs[1] < 2.5 * costs[0]
