"""Bookings whose units become free for lines that nobody looks at, or behind tickets that wait."""

from dataclasses import replace

import pytest

from moorage.core.admission.admit import admit
from moorage.core.clock import HOUR, SECOND
from moorage.core.ids import BookingId
from tests.core.admission.build import START, World


def test_what_is_given_back_in_one_pool_lets_tickets_of_the_others_start() -> None:
    """The last ticket of a booking of two pools leaves one of them: the other is looked at, too."""
    w = World()
    for name in "pq":
        w.pool(name, ttl=HOUR)
    w.book("b", {"p": 1, "q": 1}, (0, 500), no_show=60 * SECOND)
    w.pause("p")
    w.ask("mine", {"p": 1}, booking=BookingId("b"))
    w.ask("other", {"q": 1}, hold=10 * SECOND)
    w.wait(70)
    assert w.states() == {"mine": "w", "other": "w"}
    both = w.facts.pools
    w.facts = replace(w.facts, pools={"p": both["p"]}, holding={"p": w.facts.holding["p"]})
    w.facts.calls.clear()  # the batch withdraws it
    made = admit(w.facts, w.moment, w.wall)
    assert made.bookings.keys() == {"b"}
    assert made.unfinished == {"q"}
    whole = replace(w.facts, pools=both)
    assert not admit(whole, w.moment, w.wall).unfinished  # the control: it is looked at now


def test_a_ticket_that_never_fits_leaves_the_plan_to_the_next() -> None:
    """Short leases that each last into the next window do not keep a long one waiting for ever."""
    w = World()
    w.pool("p", 3, ttl=HOUR)
    w.ask("endless")
    w.book("b", {"p": 1}, *((n * 100 + 50, n * 100 + 100) for n in range(20)))
    w.ask("running", hold=120 * SECOND)
    w.ask("never", {"p": 3}, hold=60 * SECOND)
    w.ask("long", {"p": 2}, hold=50 * SECOND)
    for n in range(9):
        w.ask(f"short{n}", hold=100 * SECOND)
        w.wait(100)
    assert w.states()["never"] == "w"
    assert w.lease("long").granted_at is not None


def test_a_pool_whose_last_booking_ends_keeps_nothing_for_plans() -> None:
    """No booking needs its units any more, so a lease that would borrow gets its whole hold."""

    def is_shortened(*windows: tuple[float, float]) -> bool:
        w = World()
        w.pool("p", ttl=HOUR, hold=8 * SECOND)
        w.pool("q", ttl=HOUR)
        w.book("closed", {"q": 1}, (50, 105), closure=True)
        w.book("b", {"p": 1}, *windows)
        w.wait(60)
        w.ask("gang", {"p": 1, "q": 1}, hold=4 * SECOND)
        w.ask("one", {"p": 1}, hold=8 * SECOND, borrow=SECOND)
        w.wait(40)
        until = w.lease("one").hold_until
        return until is not None and until < w.now + 8 * SECOND

    assert not is_shortened((50, 100))
    assert is_shortened((50, 100), (300, 310))  # the control: one is still to come


def test_time_alone_ends_what_is_set_aside_for_who_would_delay_a_booking() -> None:
    """It may wait for a lease only while it would be done before the booking; others go then."""
    w = World()
    w.pool("p", 2, ttl=HOUR)
    w.ask("held")
    w.book("b", {"p": 1}, (100, 200))
    w.ask("big", {"p": 2}, hold=50 * SECOND)
    w.ask("small", hold=10 * SECOND)
    assert (w.states()["big"], w.states()["small"]) == ("w", "w")
    w.wait(50)
    assert w.states()["small"] == "w"  # the control
    assert w.facts.pools["p"].wake_at == w.now + 1
    w.wait(2)
    assert (w.states()["big"], w.lease("small").granted_at) == ("w", START + 50 * SECOND + 1)


def test_what_was_granted_needs_no_other_look() -> None:
    """The control: nothing waits, so only the booking itself is of interest."""
    w = World()
    w.pool("p", 2, ttl=HOUR)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("small", hold=10 * SECOND)
    assert w.states()["small"] == "g"
    assert w.facts.pools["p"].wake_at == START + 200 * SECOND


@pytest.mark.parametrize("gang", [False, True])
def test_who_cannot_start_before_a_window_any_more_holds_nobody_up(gang: bool) -> None:
    """Time alone lets the ticket behind it start, whether a lease has its units or a gang does."""
    w = World()
    w.pool("p", 3, ttl=HOUR)
    w.pool("q", ttl=HOUR)
    w.ask("running", {"q" if gang else "p": 1}, hold=HOUR if gang else 25 * SECOND)
    w.book("b", {"p": 1}, (30, 90))
    if gang:
        w.ask("gang", {"p": 1, "q": 1}, hold=20 * SECOND)
    w.ask("all", {"p": 3}, hold=20 * SECOND)
    w.ask("next", hold=40 * SECOND)
    w.wait(10)
    assert (w.states()["all"], w.states()["next"]) == ("w", "w"), "it may still start in time"
    w.wait(5)
    assert w.lease("next").granted_at == START + 10 * SECOND + 1
    w.wait(100)
    assert w.lease("all").granted_at == (None if gang else START + 90 * SECOND)


def test_who_may_wait_for_what_it_prefers_holds_nobody_up_elsewhere() -> None:
    """Once the window has begun, only a lease keeps it from its first alternative."""
    w = World()
    w.pool("p", 2, ttl=HOUR)
    w.pool("q", 2, ttl=HOUR)
    w.ask("long", hold=200 * SECOND)
    w.book("b", {"p": 1}, (50, 100))
    w.ask("other", {"q": 1}, hold=300 * SECOND)
    w.ask("any", any_of=({"p": 1}, {"q": 2}), hold=60 * SECOND)
    w.ask("next", {"q": 1}, hold=10 * SECOND)
    w.wait(49)
    assert (w.states()["any"], w.states()["next"]) == ("w", "w")
    assert w.facts.pools["q"].wake_at == START + 50 * SECOND
    w.wait(2)
    assert w.lease("next").granted_at == START + 50 * SECOND
