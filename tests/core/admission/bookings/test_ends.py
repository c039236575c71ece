"""A ticket of a booking does not outlast it, also where nobody looks at the line."""

from msgspec import structs

from moorage.core.clock import HOUR, SECOND
from moorage.core.ids import BookingId
from tests.core.admission.build import World, booking


def world(limit: int) -> World:
    """Return a world with one pool."""
    made = World()
    made.pool("p", limit, ttl=HOUR)
    return made


def test_tickets_of_a_booking_do_not_outlast_it_where_nothing_is_granted() -> None:
    """Nobody looks at the line of a full or paused pool; they end all the same."""
    w = world(limit=2)
    w.ask("endless")
    w.book("b", {"p": 1}, (0, 100))
    w.ask("forced", forced=True)
    w.ask("full", booking=BookingId("b"))
    assert w.states()["full"] == "w"
    w.wait(99)
    assert w.states()["full"] == "w"
    w.wait(2)
    assert (w.states()["full"], w.lease("full").detail) == ("revoked", "its booking is over")
    w.book("c", {"p": 1}, (200, 300), forced=True)
    w.pause("p")
    w.ask("paused", booking=BookingId("c"))
    w.ask("plain")
    w.cancel("c")
    assert (w.states()["paused"], w.states()["plain"]) == ("revoked", "w")


def test_a_ticket_follows_the_changes_of_its_booking() -> None:
    """A booking that moves keeps its tickets until its new end, and no longer."""
    w = world(limit=1)
    w.pause("p")
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    later = booking("b", {"p": 1}, [(300, 400)]).windows
    w.alter("b", windows=later)
    w.wait(350)
    assert w.states()["mine"] == "w"
    w.wait(51)
    assert w.states()["mine"] == "revoked"


def test_a_ticket_follows_the_wall_clock() -> None:
    """After the clock has gone back its booking lasts longer, and so does the ticket."""
    w = world(limit=1)
    w.pause("p")
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    line = w.facts.timeline
    w.facts.timeline = structs.replace(line, skew=line.skew + 50 * SECOND)
    w.wait(220)
    assert w.states()["mine"] == "w"
    w.wait(31)
    assert w.states()["mine"] == "revoked"


def test_a_grant_that_is_taken_back_does_not_outlast_its_booking() -> None:
    """Nobody has confirmed it until its booking was over, so that a batch does not load that."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (0, 100))
    w.wait(95)
    w.ask("mine", booking=BookingId("b"), attended=True, patience=HOUR)
    assert w.states()["mine"] == "g"
    w.pause("p")
    w.facts.bookings = {}
    w.wait(30)
    assert (w.states()["mine"], w.lease("mine").detail) == ("revoked", "its booking is over")


def test_a_ticket_whose_booking_is_not_loaded_waits_for_its_own_end() -> None:
    """As after the wall clock has gone back to a booking that was over, until its pool knows."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    known, w.facts.bookings = w.facts.bookings, {}
    w.sweep()
    w.ask("other", {"p": 1}, hold=10 * SECOND)
    assert w.states()["mine"] == "w"
    w.facts.bookings = known
    w.wait(110)
    assert w.states()["mine"] == "g"
