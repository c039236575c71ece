"""Bookings: whom they keep units for, when a grant fits before them, and what time brings."""

import pytest

from moorage.core.admission import pools
from moorage.core.admission.booking_model import BOOKED_PRIORITY
from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.facts import Changes
from moorage.core.admission.requests import NEVER
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import BookingId
from moorage.core.service_time import Timeline
from tests.core.admission.build import START, Refused, World, booking, make_ask

USER = Booker("me", frozenset({"user"}))


def world(limit: int = 2, **more: object) -> World:
    """Return a world with one pool."""
    made = World()
    made.pool("p", limit, **({"ttl": HOUR} | more))
    return made


def test_a_grant_that_would_last_into_a_booking_waits_for_its_end() -> None:
    """The rule, for a lease with an end."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("short", hold=100 * SECOND)
    assert w.states() == {"short": "g"}
    w.ask("long", hold=60 * SECOND)
    w.wait(99)
    assert w.states()["long"] == "w"
    w.wait(2)  # the booking has begun, and nobody uses it
    assert w.states() == {"short": "hold_over", "long": "w"}
    w.wait(99.1)
    assert w.states()["long"] == "g"
    assert w.lease("long").granted_at == START + 200 * SECOND


def test_the_control_without_the_booking_is_granted() -> None:
    """The control without the booking is granted."""
    w = world(limit=1)
    w.ask("long", hold=160 * SECOND)
    assert w.states() == {"long": "g"}


def test_a_lease_without_an_end_counts_as_endless() -> None:
    """A lease without an end counts as endless."""
    w = world(limit=2)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("first")
    w.ask("second")
    assert w.states() == {"first": "g", "second": "w"}
    w.wait(199)
    assert w.states()["second"] == "w"
    w.wait(2)
    assert w.states()["second"] == "g"


def test_a_booking_is_refused_if_an_endless_lease_has_its_unit() -> None:
    """A booking is refused if an endless lease has its unit."""
    w = world(limit=1)
    w.ask("endless")
    with Refused(Code.BOOKED):
        w.book("b", {"p": 1}, (100, 200))
    w.release("endless")
    w.book("b", {"p": 1}, (100, 200))


def test_a_booking_is_accepted_after_the_hold_of_a_lease() -> None:
    """A booking is accepted after the hold of a lease."""
    w = world(limit=1)
    w.ask("held", hold=100 * SECOND)
    with Refused(Code.BOOKED):
        w.book("b", {"p": 1}, (99, 200))
    w.book("b", {"p": 1}, (100, 200))


def test_a_booking_is_accepted_after_the_cooldown_of_a_lease() -> None:
    """A unit that has to rest after a lease is not free for a booking meanwhile."""
    w = world(limit=1, cooldown=10 * SECOND)
    w.ask("held", hold=100 * SECOND)
    with Refused(Code.BOOKED):
        w.book("b", {"p": 1}, (109, 200))
    w.book("b", {"p": 1}, (110, 200))


def test_what_nobody_uses_is_given_back_without_a_line() -> None:
    """Time alone does it, although nobody waits, and ends the booking; also in a paused pool."""
    w = world(limit=1)
    w.do(pools.pause(w.facts, w.moment, w.wall, "p", paused=True))
    w.book("b", {"p": 1}, (100, 200), no_show=10 * SECOND)
    for wakes, later in ((110, 110), (200, 90)):
        assert w.facts.pools["p"].wake_at == START + wakes * SECOND
        w.wait(later)
    booking = w.facts.bookings[BookingId("b")]
    assert booking.given_back == (START + 100 * SECOND,)
    assert w.facts.pools["p"].booked_until is None
    assert w.facts.pools["p"].wake_at is None


def test_a_booking_leaves_a_pool() -> None:
    """A change of its needs ends what it keeps in a pool, at once."""
    w = world(limit=1)
    w.pool("q", 1, ttl=HOUR)
    w.book("a", {"p": 1}, (300, 400))
    w.book("b", {"p": 1, "q": 1}, (500, 600))
    w.alter("b", needs=booking("b", {"q": 1}, [(500, 600)]).needs)
    ends = {name: w.facts.pools[name].booked_until for name in ("p", "q")}
    assert ends == {"p": START + 400 * SECOND, "q": START + 600 * SECOND}


def test_two_bookings_never_exceed_the_limit() -> None:
    """The rule, for bookings: the second one is refused, or begins when the first ends."""
    w = world(limit=3)
    w.book("a", {"p": 2}, (100, 200))
    with Refused(Code.BOOKED):
        w.book("b", {"p": 2}, (150, 250))
    w.book("b", {"p": 2}, (200, 300))  # it begins when the other ends
    w.book("c", {"p": 1}, (0, 300))


def test_an_extension_over_the_booking_of_another_is_refused() -> None:
    """Nobody can lengthen a hold into what somebody else has booked."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("held", hold=50 * SECOND)
    w.hold("held", 100 * SECOND)
    with Refused(Code.BOOKED):
        w.hold("held", 101 * SECOND)
    with Refused(Code.BOOKED):
        w.hold("held", None)
    w.hold("held", 20 * SECOND)  # a shorter one is always possible


def test_the_booking_of_another_cannot_be_extended_over_a_third() -> None:
    """The booking of another cannot be extended over a third."""
    w = world(limit=1)
    w.book("a", {"p": 1}, (100, 200))
    w.book("b", {"p": 1}, (200, 300))
    with Refused(Code.BOOKED):
        w.alter("a", windows=booking("a", {"p": 1}, [(100, 201)]).windows)
    w.alter("a", windows=booking("a", {"p": 1}, [(50, 200)]).windows)


def test_its_ticket_is_granted_at_the_start_and_ends_at_the_end() -> None:
    """Both ends are exact, so the next booking finds its units free.

    Source: Blazar's blueprint on-end-options: what went on after its end broke the next lease.
    """
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    assert w.lease("mine").priority == BOOKED_PRIORITY
    w.wait(150)
    mine = w.lease("mine")
    assert (mine.granted_at, mine.hold_until) == (START + 100 * SECOND, START + 200 * SECOND)
    w.wait(50)
    assert w.states() == {"mine": "hold_over"}


def test_a_booking_goes_before_older_and_more_important_tickets() -> None:
    """A booking goes before older and more important tickets."""
    w = world(limit=1)
    w.ask("held", hold=100 * SECOND)
    w.ask("vip", priority=100, hold=10 * SECOND)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    w.wait(100)
    assert w.states() == {"held": "hold_over", "vip": "w", "mine": "g"}


def test_only_its_owner_and_operators_use_a_booking() -> None:
    """Only its owner and operators use a booking."""
    w = world(limit=2)
    w.book("b", {"p": 1}, (0, 200), owner="ann")
    with Refused(Code.HOLDER_MISMATCH):
        w.ask("eve", booking=BookingId("b"), owner="eve")
    with Refused(Code.BOOKING_NOT_FOUND):
        w.ask("eve", booking=BookingId("x"), owner="eve")
    with Refused(Code.UNITS_ABOVE_LIMIT):
        w.ask("ann", {"p": 2}, booking=BookingId("b"), owner="ann")
    w.ask("ann", booking=BookingId("b"), owner="ann")
    w.ask("op", booking=BookingId("b"), owner="op", roles=frozenset({"operator"}))
    assert w.states() == {"ann": "g", "op": "w"}  # the booking has one unit
    w.release("ann")
    assert w.states()["op"] == "g"


def test_a_no_show_gives_its_units_back() -> None:
    """A no show gives its units back."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), no_show=15 * SECOND)
    w.ask("other")
    w.wait(114)
    assert w.states()["other"] == "w"
    w.wait(2)
    assert w.states()["other"] == "g"
    assert w.lease("other").granted_at == START + 115 * SECOND


def test_who_waits_for_its_booking_is_no_no_show() -> None:
    """The unit is late, because the limit was lowered: the booking keeps its claim."""
    w = world(limit=2)
    w.book("b", {"p": 2}, (100, 200), no_show=15 * SECOND)
    w.ask("mine", {"p": 2}, booking=BookingId("b"))
    w.pool("p", 1)
    w.ask("other", hold=10 * SECOND)
    w.wait(150)
    assert w.states()["mine"] == "w"
    w.pool("p", 2)
    assert w.states()["mine"] == "g"


def test_an_outage_does_not_make_a_no_show() -> None:
    """An outage does not make a no show."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), no_show=15 * SECOND)
    w.ask("other")
    w.now += 130 * SECOND
    w.facts.timeline = Timeline(alive_at=Instant(w.now), outage_ended_at=Instant(w.now))
    w.sweep()
    w.ask("mine", booking=BookingId("b"))
    assert w.states() == {"other": "w", "mine": "g"}


def test_a_window_that_an_outage_has_swallowed_is_over() -> None:
    """Nothing is missed and nothing blocks: there are no events, only times that are compared.

    Source: Blazar's release notes (event-retry): events at the time of an update were lost.
    """
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    w.ask("other")
    w.now += 250 * SECOND
    w.sweep()
    assert w.states() == {"mine": "revoked", "other": "g"}
    assert w.facts.pools["p"].booked_until is None


def test_cancelling_a_running_booking_leaves_its_lease_and_frees_the_rest() -> None:
    """Source: Blazar bugs 1791741 and 1847821: deletions at the start left hosts nowhere."""
    w = world(limit=2)
    w.book("b", {"p": 2}, (0, 200))
    w.ask("mine", booking=BookingId("b"))
    w.ask("other")
    assert w.states() == {"mine": "g", "other": "w"}
    w.cancel("b")
    assert w.states() == {"mine": "g", "other": "g"}
    w.wait(200)
    assert w.states()["mine"] == "hold_over"


def test_the_tickets_of_a_cancelled_booking_end() -> None:
    """The tickets of a cancelled booking end."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("mine", booking=BookingId("b"))
    w.cancel("b")
    assert w.states() == {"mine": "revoked"}
    assert w.lease("mine").detail == "its booking was cancelled"
    w.cancel("b")  # harmless


def test_a_series_has_gaps_in_which_others_start() -> None:
    """A series has gaps in which others start."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), (300, 400))
    w.ask("a", hold=100 * SECOND)
    w.ask("b1", hold=100 * SECOND)
    w.wait(199)
    assert w.states() == {"a": "hold_over", "b1": "w"}
    w.wait(2)
    assert w.states()["b1"] == "g"


def test_the_lead_keeps_the_units_before_the_start() -> None:
    """The lead keeps the units before the start."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), lead=30 * SECOND)
    w.ask("a", hold=71 * SECOND)
    w.ask("b1", hold=70 * SECOND)
    assert w.states() == {"a": "w", "b1": "g"}


def test_the_cooldown_is_over_when_a_booking_starts() -> None:
    """Source: `cleaning_time` of Blazar, which it needed for the same."""
    w = world(limit=1, cooldown=10 * SECOND)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("a", hold=91 * SECOND)
    w.ask("b1", hold=90 * SECOND)
    w.ask("mine", booking=BookingId("b"))
    assert w.states() == {"a": "w", "b1": "g", "mine": "w"}
    w.wait(100)
    assert w.lease("mine").granted_at == START + 100 * SECOND


def test_who_borrows_ends_before_the_booking_and_knows_for_whom() -> None:
    """Who borrows ends before the booking and knows for whom."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), lead=10 * SECOND)
    w.ask("borrower", borrow=60 * SECOND)
    lease = w.lease("borrower")
    assert (lease.state, lease.hold_until) == ("granted", START + 90 * SECOND)
    assert lease.yields_to == "b"
    w.wait(50)
    w.release("borrower")
    w.ask("too late", borrow=60 * SECOND)
    assert w.states()["too late"] == "w"


def test_who_would_borrow_but_need_not_is_not_shortened() -> None:
    """Who would borrow but need not is not shortened."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("a", borrow=10 * SECOND, hold=50 * SECOND)
    assert (w.lease("a").hold_until, w.lease("a").yields_to) == (START + 50 * SECOND, None)


def test_a_ticket_held_up_by_a_booking_does_not_starve() -> None:
    """Daily bookings, and short leases that always fit: the long one has its turn all the same."""
    w = world(limit=2)
    w.book("b", {"p": 1}, *((n * 100 + 90, n * 100 + 100) for n in range(1, 30)))
    w.ask("now", {"p": 2}, hold=150 * SECOND)
    w.ask("long", {"p": 2}, hold=85 * SECOND)
    w.wait(160)
    for n in range(40):
        w.ask(f"short{n}", hold=40 * SECOND)
        w.wait(25)
    long = w.lease("long")
    assert long.granted_at is not None and long.granted_at <= START + 310 * SECOND


def test_short_leases_fill_the_time_before_a_booking() -> None:
    """Short leases fill the time before a booking."""
    w = world(limit=2)
    w.book("b", {"p": 2}, (100, 200))
    w.ask("endless")
    w.ask("a", hold=30 * SECOND)
    w.ask("b1", hold=30 * SECOND)
    assert w.states() == {"endless": "w", "a": "g", "b1": "g"}


def test_a_closure_lets_nothing_start_that_would_last_into_it() -> None:
    """A closure lets nothing start that would last into it."""
    w = world(limit=2)
    w.ask("endless")  # what has started goes on
    w.book("c", {"p": 0}, (100, 200), closure=True)
    w.ask("late", hold=101 * SECOND)
    w.ask("soon", hold=100 * SECOND)
    assert w.states() == {"endless": "g", "late": "w", "soon": "g"}
    w.wait(199)
    w.ask("in it", hold=SECOND)
    assert w.states()["in it"] == "w"
    w.wait(2)
    assert w.states()["late"] == "g"


def test_a_closure_yields_to_bookings_unless_it_is_forced() -> None:
    """A closure yields to bookings unless it is forced."""
    w = world(limit=2)
    w.book("b", {"p": 1}, (100, 200))
    with Refused(Code.BOOKED):
        w.book("c", {"p": 0}, (150, 250), closure=True)
    with Refused(Code.ASKER_REFUSED):
        w.book("c", {"p": 1}, (200, 250), closure=True, by=USER)
    w.book("c", {"p": 0}, (150, 250), closure=True, forced=True)


def test_forced_leases_ignore_bookings_and_the_booking_is_served_next() -> None:
    """Forced leases ignore bookings and the booking is served next."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("forced", forced=True)
    w.ask("mine", booking=BookingId("b"))
    w.ask("vip", priority=9)
    w.wait(120)
    assert w.states() == {"forced": "g", "mine": "w", "vip": "w"}
    w.release("forced")
    assert w.states() == {"forced": "released", "mine": "g", "vip": "w"}


def test_two_bookings_that_do_not_fit_any_more_are_served_one_after_the_other() -> None:
    """A lowered limit must not make each wait for what the other keeps."""
    w = world(limit=4)
    w.book("a", {"p": 2}, (100, 200))
    w.book("b", {"p": 2}, (100, 200))
    w.ask("of a", {"p": 2}, booking=BookingId("a"))
    w.ask("of b", {"p": 2}, booking=BookingId("b"))
    w.pool("p", 3)
    w.wait(100)
    assert w.states() == {"of a": "g", "of b": "w"}
    w.release("of a")
    assert w.states()["of b"] == "g"


def test_a_booking_gets_the_unit_that_is_left_although_another_has_booked_it() -> None:
    """Its other unit is still in use, and nobody waits for the other booking yet."""
    w = world(limit=2)
    w.book("one", {"p": 1}, (100, 200))
    w.book("two", {"p": 1}, (100, 200))
    w.ask("late", hold=100 * SECOND, forced=True)
    w.wait(99)
    w.ask("stays", hold=50 * SECOND, forced=True)
    w.wait(2)
    w.ask("first", booking=BookingId("one"))
    assert w.states()["first"] == "g"


def test_bookings_follow_the_wall_clock_and_leases_do_not() -> None:
    """The clock is put forward by a minute: the booking comes sooner, the lease lasts as long."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    w.ask("held", hold=100 * SECOND)
    w.ask("mine", booking=BookingId("b"))
    w.facts.timeline = Timeline(alive_at=Instant(w.now), skew=-60 * SECOND)
    w.do((Changes(), None))
    w.wait(99)
    assert w.states() == {"held": "g", "mine": "w"}
    w.wait(1)
    mine = w.lease("mine")
    assert (mine.granted_at, mine.hold_until) == (START + 100 * SECOND, START + 140 * SECOND)


def test_users_book_within_the_bounds_of_the_pool() -> None:
    """Users book within the bounds of the pool."""
    w = world(limit=4)
    with Refused(Code.ASKER_REFUSED):
        w.book("b", {"p": 1}, (100, 200), by=USER)
    w.pool("p", 4, book_ahead=10 * HOUR, book_hours=3, askers=("me",))
    w.book("b", {"p": 1}, (0, 7200), by=USER)
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("c", {"p": 2}, (0, 3600), by=USER)
    w.book("c", {"p": 1}, (0, 3600), by=USER)
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("d", {"p": 1}, (9.9 * 3600, 10.1 * 3600), by=USER)
    with Refused(Code.ASKER_REFUSED):
        w.book("e", {"p": 1}, (0, 60), by=Booker("eve", frozenset({"user"})), owner="eve")
    with Refused(Code.HOLDER_MISMATCH):
        w.cancel("b", by=Booker("eve", frozenset({"user"})))


def test_a_refused_change_leaves_the_booking_as_it_is() -> None:
    """Source: Blazar bug 1786031: an invalid update made a lease useless (ERROR)."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200))
    before = w.facts.bookings[BookingId("b")]
    with Refused(Code.INVALID):
        w.alter("b", windows=booking("b", {"p": 1}, [(200, 100)]).windows)
    with Refused(Code.UNITS_ABOVE_LIMIT):
        w.alter("b", needs=booking("b", {"p": 2}, [(100, 200)]).needs)
    assert w.facts.bookings[BookingId("b")] == before
    w.ask("mine", booking=BookingId("b"))
    w.wait(100)
    assert w.states()["mine"] == "g"


def test_others_cannot_change_a_booking_by_its_id() -> None:
    """Source: Blazar bug 2162719: any user could update and delete a lease of any project."""
    w = world(limit=1, book_ahead=HOUR, book_hours=9)
    w.book("b", {"p": 1}, (100, 200), owner="ann")
    eve = Booker("eve", frozenset({"user"}))
    with Refused(Code.HOLDER_MISMATCH):
        w.alter("b", by=eve, note="mine now")
    with Refused(Code.HOLDER_MISMATCH):
        w.cancel("b", by=eve)


def test_a_key_stands_for_one_booking() -> None:
    """A key stands for one booking."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (100, 200), key="k")
    assert w.book("b2", {"p": 1}, (100, 200), key="k") == "b"
    with Refused(Code.KEY_REUSED):
        w.book("b3", {"p": 1}, (100, 200), key="k", digest="other")


@pytest.mark.parametrize(
    ("windows", "more"),
    [
        ([(200, 100)], {}),
        ([(100, 100)], {}),
        ([(-20, -10)], {}),
        ([(100, 200), (150, 250)], {}),
        ([(0, 367 * 86400)], {}),
        ([(731 * 86400 - 10, 731 * 86400 + 10)], {}),
        ([(n, n + 0.5) for n in range(367)], {}),
        ([(100, 200)], {"lead": -1}),
        ([(100, 200)], {"no_show": 0}),
    ],
)
def test_invalid_windows(windows: list[tuple[float, float]], more: dict[str, int]) -> None:
    """Invalid windows."""
    with Refused(Code.INVALID):
        world().book("b", {"p": 1}, *windows, **more)


def test_a_pool_has_a_bounded_number_of_bookings() -> None:
    """A pool has a bounded number of bookings."""
    w = world(limit=300)
    for n in range(200):
        w.book(f"b{n}", {"p": 1}, (100, 200))
    with Refused(Code.LIMIT_EXCEEDED):
        w.book("more", {"p": 1}, (100, 200))


def test_a_pool_with_bookings_is_not_deleted() -> None:
    """A pool with bookings is not deleted."""
    w = world()
    w.book("b", {"p": 1}, (100, 200))
    with Refused(Code.POOL_IN_USE):
        pools.delete(w.facts, w.moment, "p")


def test_a_gang_waits_until_both_pools_are_free_of_bookings() -> None:
    """A gang waits until both pools are free of bookings."""
    w = world(limit=1)
    w.pool("q", 1)
    w.book("b", {"p": 1}, (100, 200))
    w.book("c", {"q": 1}, (210, 300))
    w.ask("gang", {"p": 1, "q": 1}, hold=50 * SECOND)
    assert w.states() == {"gang": "g"}
    w.release("gang")
    w.wait(60)
    w.ask("gang2", {"p": 1, "q": 1}, hold=50 * SECOND)
    w.wait(239)
    assert w.states()["gang2"] == "w"
    w.wait(2)
    assert w.states()["gang2"] == "g"


def test_slots_are_kept_like_units() -> None:
    """Slots are kept like units."""
    w = World()
    w.slots("s", "s1", "s2")
    w.book("b", {"s": 1}, (100, 200))
    w.ask("a", {"s": 1})
    w.ask("b1", {"s": 1}, hold=10 * SECOND)
    w.ask("c", {"s": 1})
    assert w.states() == {"a": "g", "b1": "g", "c": "w"}
    w.ask("mine", {"s": 1}, booking=BookingId("b"))
    w.wait(100)
    assert w.states()["mine"] == "g"


def test_a_retry_of_a_booking_keeps_its_units() -> None:
    """A retry of a booking keeps its units."""
    w = world(limit=1)
    w.book("b", {"p": 1}, (0, 200))
    w.ask("mine", booking=BookingId("b"))
    w.ask("other", hold=10 * SECOND)
    w.retry("mine", make_ask("again", {"p": 1}, booking=BookingId("b"), hold=NEVER))
    assert w.states() == {"mine": "retried", "other": "w", "again": "g"}
    assert w.lease("again").hold_until == START + 200 * SECOND
