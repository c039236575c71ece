"""Bounds of what one caller may book, and of what an answer about bookings costs."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from moorage.core.admission.booking_model import Window
from moorage.core.admission.calendar.booked_pools import BookedPools
from moorage.core.admission.calendar.bookings import Booker, offers
from moorage.core.admission.calendar.profile import Profile
from moorage.core.admission.draft import Draft
from moorage.core.admission.model import Need
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import BookingId
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
    """Return who books, for whom."""
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


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of Python some work takes."""
    ran = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
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
        within = Window(Instant(START), Instant(START + 10 * windows * SECOND))
        needs = [Need(pool, 1) for pool in ("p", "q", "r")]
        costs.append(lines_run(partial(offers, w.facts, w.moment.at, needs, SECOND, within, 50)))
    assert costs[1] < 2.5 * costs[0]


def test_what_bookings_keep_costs_as_much_as_there_are_bookings() -> None:
    """Each grant of a pool asks for that, and tickets may wait for all of its bookings."""
    costs = []
    for number in (20, 40):
        w = world(limit=100)
        for n in range(number):
            w.book(f"b{n}", {"p": 1}, *[(100 + m * 10, 105 + m * 10) for m in range(10)])
            w.facts.calls[BookingId(f"b{n}")] = 1
        w.now += 102 * SECOND
        booked = BookedPools(Draft(w.facts, w.moment, w.wall))
        assert booked.kept("p", None) == number
        assert booked.untouched("p") == 0
        costs.append(lines_run(partial(booked.untouched, "p")))
    assert costs[1] < 2.5 * costs[0]


def test_leases_of_one_window_cost_nothing_in_the_others() -> None:
    """A booking may have hundreds of windows, and hundreds of leases with different ends."""
    w = world(limit=100)
    w.book("b", {"p": 100}, *[(100 + m * 100, 190 + m * 100) for m in range(100)])
    for n in range(50):
        w.facts.holding["p"][Instant(START + (110 + n) * SECOND), "b"] = 1
    w.now += 102 * SECOND
    profile = Profile(w.facts, w.facts.pools["p"], w.moment.at)
    assert lines_run(partial(profile.fits_until, 1)) < 50 * (100 + 50)


def test_a_line_that_bookings_hold_up_costs_one_pass_over_them() -> None:
    """What the first ticket finds out about all windows, the thousandth need not."""
    w = world(limit=1)
    w.book("b", {"p": 1}, *[(100 + m * 100, 190 + m * 100) for m in range(100)])
    for name in ("first", "second"):
        w.ask(name, hold=99 * SECOND)
    booked = BookedPools(Draft(w.facts, w.moment, w.wall))
    costs = [lines_run(partial(booked.judge, w.lease(name))) for name in ("first", "second")]
    assert costs[1] < 100 < costs[0]
