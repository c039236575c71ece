"""Bookings together with alternatives, stops, hand-overs, kept leases, templates and the rest."""

from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission import handing_over, keeping, templates
from moorage.core.admission.adaptive import rule as adaptive
from moorage.core.admission.admit import order
from moorage.core.admission.booking_model import Window
from moorage.core.admission.calendar.bookings import Booker, offers
from moorage.core.admission.facts import Changes
from moorage.core.admission.handing_over import Acceptance
from moorage.core.admission.model import (
    Need,
)
from moorage.core.admission.requests import LeaseRequest, Proof, request_again
from moorage.core.admission.templates import TemplateWish
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import BookingId, LeaseId
from moorage.core.pool_values import Adaptive, FairShare
from tests.core.admission.build import START, Refused, World, make_ask, spec

A, B = {"a": 1}, {"b": 1}


def two(limit: int = 1, **more: Any) -> World:
    """Return two pools, of which `a` is booked from 100 s to 200 s."""
    world = World()
    world.pool("a", limit, **({"ttl": HOUR} | more))
    world.pool("b", limit, ttl=HOUR)
    world.book("b", {"a": limit}, (100, 200))
    return world


def one(limit: int = 1, **more: Any) -> World:
    """Return one pool, which is booked from 100 s to 200 s."""
    world = World()
    world.pool("p", limit, **({"ttl": HOUR} | more))
    world.book("b", {"p": limit}, (100, 200))
    return world


def needs(world: World, key: str) -> dict[str, int]:
    """Return the needs of a lease by pool."""
    return {need.pool: need.units for need in world.lease(key).needs}


def keep(world: World, key: str, seconds: float, *, at_most: bool = False) -> LeaseId:
    """Keep a lease for inspection."""
    wanted, proof = round(seconds * SECOND), Proof("me")
    made = keeping.keep(
        world.facts, world.moment, LeaseId(key), proof, wanted, "why", at_most=at_most
    )
    return world.do(made)


def hand_over(world: World, key: str = "a", to: str = "bob") -> LeaseId:
    """Offer a lease of `me`, and accept it."""
    lease, fresh = LeaseId(key), LeaseId("taken")
    made = handing_over.offer(world.facts, world.moment, lease, Proof("me"), to, 60 * SECOND)
    world.do(made)
    how = Acceptance(owner=to, key="taken", fresh=fresh, digest="of it")
    return world.do(handing_over.accept(world.facts, world.moment, world.wall, lease, how))


def until(world: World, key: str) -> float | None:
    """Return when the hold of a lease ends, in seconds from `START`."""
    ends = world.lease(key).hold_until
    return None if ends is None else (ends - START) / SECOND


def test_of_alternatives_the_one_that_is_not_booked_is_granted() -> None:
    """Although it is the later one, and neither has a lease."""
    world = two()
    world.ask("t", any_of=[A, B], in_order=True, hold=150 * SECOND)
    assert world.states() == {"t": "g"}
    assert needs(world, "t") == B


def test_the_control_a_short_hold_gets_the_first_alternative() -> None:
    """The booking does not matter to it."""
    world = two()
    world.ask("t", any_of=[A, B], in_order=True, hold=90 * SECOND)
    assert needs(world, "t") == A


def test_an_alternative_that_is_booked_sets_nothing_aside() -> None:
    """The ticket waits for the other one, and short leases go on in the booked pool."""
    world = two()
    world.ask("other", B, hold=150 * SECOND)
    world.ask("t", any_of=[A, B], in_order=True, hold=150 * SECOND)
    world.ask("short", A, hold=20 * SECOND)
    assert world.states() == {"other": "g", "t": "w", "short": "g"}
    world.release("other")
    assert needs(world, "t") == B


def test_the_hold_that_counts_is_that_of_the_alternative() -> None:
    """Without one of its own: a ticket in both lines would have the shorter one."""
    world = two(hold=150 * SECOND)
    world.pool("b", 1, ttl=HOUR, hold=20 * SECOND)
    world.ask("t", any_of=[A, B], in_order=True)
    assert needs(world, "t") == B
    assert until(world, "t") == 20


def test_if_all_alternatives_are_booked_the_first_is_planned() -> None:
    """It starts when its booking ends; nobody behind it may delay that."""
    world = two()
    world.book("c", B, (100, 300))
    world.ask("t", any_of=[A, B], in_order=True, hold=150 * SECOND)
    world.ask("behind", A, hold=150 * SECOND)
    world.wait(201)
    assert world.states() == {"t": "g", "behind": "w"}
    assert needs(world, "t") == A


def test_a_booking_excludes_alternatives() -> None:
    """It says itself of which pools its units are."""
    world = two()
    with Refused(Code.INVALID):
        world.ask("t", any_of=[A, B], booking="b")


def test_a_lease_whose_holder_is_asked_to_stop_counts_until_then() -> None:
    """It has no hold, and still a booking may follow it."""
    world = World()
    world.pool("p", 1, ttl=60 * SECOND)
    world.ask("old", group="g", owner="x/me")
    with Refused(Code.BOOKED):
        world.book("b", {"p": 1}, (100, 200))
    world.ask("new", group="g", owner="x/me", cancel_running=True, patience=500 * SECOND)
    assert world.lease("old").stop_until == START + 60 * SECOND
    world.book("b", {"p": 1}, (100, 200))
    world.release("new")
    world.ask("short", owner="you", hold=30 * SECOND)
    world.ask("long", owner="you", hold=50 * SECOND)
    world.wait(70)
    assert world.states() == {"old": "superseded", "new": "withdrawn", "short": "g", "long": "w"}


def test_what_is_granted_follows_the_stop_of_its_batch() -> None:
    """The sums of the pool know it in the same batch as the newer request."""
    world = one(limit=2, ttl=60 * SECOND)
    world.cancel("b")
    world.ask("old", group="g", owner="x/me")
    world.ask("new", {"p": 2}, group="g", owner="x/me", cancel_running=True)
    held = {key: units for key, units in world.facts.holding["p"].items() if units}
    assert held == {(Instant(START + 60 * SECOND), ""): 1}


def test_a_newer_request_of_a_group_takes_no_place_of_another_booking() -> None:
    """The place of a ticket with a booking is not for requests without it."""
    world = one()
    world.ask("t", booking="b", group="g")
    world.ask("u", group="g")
    assert world.states() == {"t": "superseded", "u": "w"}
    assert world.lease("u").priority == 0
    assert world.lease("u").arrival > world.lease("t").arrival


def test_a_hold_is_not_extended_into_a_booking() -> None:
    """Neither to a later time nor for ever; up to the booking it is."""
    world = one()
    world.ask("a", hold=50 * SECOND)
    for wanted in (101 * SECOND, None):
        with Refused(Code.BOOKED):
            world.hold("a", wanted)
    world.hold("a", 100 * SECOND)
    assert until(world, "a") == 100


def test_a_cooldown_is_part_of_an_extension() -> None:
    """The units must have rested when the booking begins."""
    world = one(cooldown=10 * SECOND)
    world.ask("a", hold=50 * SECOND)
    with Refused(Code.BOOKED):
        world.hold("a", 91 * SECOND)
    world.hold("a", 90 * SECOND)


def test_a_lowered_limit_does_not_forbid_an_extension_before_the_booking() -> None:
    """No booking needs the units until then."""
    world = one(limit=2)
    world.ask("a", hold=50 * SECOND)
    world.ask("b", hold=50 * SECOND)
    world.pool("p", 1, ttl=HOUR)
    world.hold("a", 80 * SECOND)
    assert until(world, "a") == 80
    with Refused(Code.BOOKED):
        world.hold("a", 120 * SECOND)


def test_of_several_bookings_the_first_that_needs_the_units_counts() -> None:
    """Whatever the order in which they were made: the later one was made first."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.book("z", {"p": 1}, (300, 400))
    world.book("y", {"p": 1}, (100, 200))
    world.ask("a", hold=50 * SECOND)
    with Refused(Code.BOOKED):
        world.hold("a", 150 * SECOND)


def test_a_lease_is_kept_until_a_booking_at_most() -> None:
    """Longer is refused; with `at_most` it is cut at the booking."""
    world = one()
    world.ask("a", hold=50 * SECOND)
    with Refused(Code.BOOKED):
        keep(world, "a", 300)
    keep(world, "a", 300, at_most=True)
    assert until(world, "a") == 100
    world.wait(101)
    assert world.states() == {"a": "hold_over"}


def test_the_control_without_a_booking_it_is_kept_longer() -> None:
    """The control of the test above."""
    world = one()
    world.cancel("b")
    world.ask("a", hold=50 * SECOND)
    keep(world, "a", 300, at_most=True)
    assert until(world, "a") == 300


def test_a_lease_of_a_booking_is_handed_over_with_its_booking() -> None:
    """Its units are those of the booking, in whatever hands: they are not kept twice."""
    world = one(limit=2)
    world.cancel("b")
    world.book("c", {"p": 1}, (10, 200))
    world.wait(20)
    world.ask("a", booking="c")
    hand_over(world)
    world.ask("other", hold=100 * SECOND)
    assert world.states() == {"a": "handed_over", "taken": "g", "other": "g"}
    assert until(world, "taken") == 200
    assert world.lease("taken").booking == "c"
    world.wait(181)
    assert world.states()["taken"] == "hold_over"


def test_who_has_taken_over_a_lease_cannot_use_the_booking_again() -> None:
    """It belongs to somebody else: neither a new request nor a retry."""
    world = one()
    world.wait(110)
    world.ask("a", booking="b")
    hand_over(world)
    with Refused(Code.HOLDER_MISMATCH):
        world.ask("mine", owner="bob", booking="b")
    again = request_again(world.lease("taken"), LeaseId("again"), "again")
    with Refused(Code.HOLDER_MISMATCH):
        world.retry("taken", again, Proof("bob"))
    assert world.states()["taken"] == "g"


def test_a_handed_over_lease_is_not_extended_into_a_booking() -> None:
    """The receiver has no longer hold than the giver could have had."""
    world = one()
    world.ask("a", hold=50 * SECOND)
    hand_over(world)
    with Refused(Code.BOOKED):
        world.hold("taken", 101 * SECOND, Proof("bob"))


def test_a_retry_with_a_booking_that_was_cancelled_is_refused() -> None:
    """It would get a whole hold although nothing is booked any more."""
    world = one()
    world.wait(110)
    world.ask("a", booking="b", hold=20 * SECOND)
    world.cancel("b")
    again = request_again(world.lease("a"), LeaseId("again"), "again")
    with Refused(Code.BOOKING_NOT_FOUND):
        world.retry("a", again)


class Templates(World):
    """A world with a template whose pools go after a minute."""

    def __init__(self) -> None:
        super().__init__()
        wish = TemplateWish(spec(1, ttl=HOUR), 60 * SECOND, 3)
        changes, _ = templates.put(self.facts, self.wall, "d/*", wish)
        self.do((changes, None))


def test_a_pool_on_demand_stays_while_it_is_booked() -> None:
    """Its idle time begins with the end of its last booking, without any request."""
    world = Templates()
    world.ask("a", {"d/x": 1})
    world.release("a")
    world.book("b", {"d/x": 1}, (500, 600))
    world.wait(590)
    assert "d/x" in world.facts.pools
    world.wait(60)
    assert "d/x" in world.facts.pools
    world.wait(11)
    assert "d/x" not in world.facts.pools


def test_a_cancelled_booking_lets_a_pool_on_demand_go() -> None:
    """After its idle time; the control of the test above."""
    world = Templates()
    world.ask("a", {"d/x": 1})
    world.release("a")
    world.book("b", {"d/x": 1}, (500, 600))
    world.wait(100)
    world.cancel("b")
    world.wait(59)
    assert "d/x" in world.facts.pools
    world.wait(2)
    assert "d/x" not in world.facts.pools


def test_a_booking_makes_no_pool() -> None:
    """Only a request does: nobody fills a template with pools for next year."""
    world = Templates()
    with Refused(Code.POOL_UNKNOWN):
        world.book("b", {"d/x": 1}, (500, 600))


def adapted(world: World, limit: int, configured: int) -> None:
    """Set the limit in force of an adaptive pool."""
    settings = Adaptive(floor=1, ceiling=configured, mode="act")
    described = spec(configured, ttl=HOUR, adaptive=settings)
    made, state = adaptive.asked(described, None, world.moment.at)
    pool = structs.replace(
        world.facts.pools["p"], spec=structs.replace(made, limit=limit), adaptation=state
    )
    world.do((Changes(pools={"p": pool}), None))


def test_bookings_count_on_the_limit_that_an_operator_has_set() -> None:
    """An adaptive limit that is low at the moment says little about next week."""
    world = World()
    world.pool("p", 4, ttl=HOUR)
    adapted(world, 2, 4)
    world.book("b", {"p": 3}, (100, 200))
    with Refused(Code.BOOKED):
        world.book("c", {"p": 2}, (150, 250))
    world.book("c", {"p": 1}, (150, 250))
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.book("d", {"p": 5}, (300, 400))
    seen = [Need("p", 2)]
    within = Window(Instant(START + 50 * SECOND), Instant(START + 400 * SECOND))
    found = offers(world.facts, world.moment.at, seen, 10 * SECOND, within, 9)
    assert [(one.start, one.end) for one in found] == [
        (START + 50 * SECOND, START + 100 * SECOND),
        (START + 200 * SECOND, START + 400 * SECOND),
    ]


def test_the_limit_in_force_decides_what_a_booking_gets() -> None:
    """A ticket above it waits, single units are granted; a hold before the booking still fits."""
    world = World()
    world.pool("p", 4, ttl=HOUR)
    adapted(world, 2, 4)
    world.book("b", {"p": 3}, (100, 200))
    world.ask("short", hold=50 * SECOND)
    world.ask("long", hold=150 * SECOND)
    assert world.states() == {"short": "g", "long": "w"}
    world.wait(110)
    world.ask("all", {"p": 3}, booking="b")
    world.ask("one", booking="b")
    world.ask("two", booking="b")
    assert world.states() == {
        "short": "hold_over",
        "long": "w",
        "all": "w",
        "one": "g",
        "two": "g",
    }
    world.release("one")
    adapted(world, 4, 4)
    assert world.states()["all"] == "w"  # its booking has three units, and one is in use
    world.release("two")
    assert world.states()["all"] == "g"


def newest() -> World:
    """Return a booked pool whose newest request goes first."""
    return one(order="newest")


def test_a_ticket_of_a_booking_is_first_also_where_the_newest_goes_first() -> None:
    """Whenever the others have asked."""
    world = newest()
    world.ask("booked", booking="b", hold=20 * SECOND)
    world.ask("later", hold=30 * SECOND, patience=900 * SECOND)
    assert world.states() == {"booked": "w", "later": "g"}
    world.wait(101)
    world.ask("newest", hold=10 * SECOND)
    assert world.states() == {"booked": "g", "later": "hold_over", "newest": "w"}


def test_the_newest_that_bookings_hold_up_is_planned() -> None:
    """The plan goes to the one that goes first."""
    world = newest()
    world.ask("old", hold=120 * SECOND)
    world.ask("new", hold=120 * SECOND)
    world.wait(201)
    assert world.states() == {"old": "w", "new": "g"}


def test_users_book_pools_of_templates_as_the_template_permits() -> None:
    """`book_ahead` and `book_hours` are settings as any others."""
    world = World()
    described = spec(1, ttl=HOUR, book_ahead=HOUR, book_hours=1)
    changes, _ = templates.put(world.facts, world.wall, "d/*", TemplateWish(described, HOUR, 3))
    world.do((changes, None))
    world.ask("a", {"d/x": 1})
    world.release("a")
    world.book("b", {"d/x": 1}, (100, 200), by=Booker("me", frozenset({"user"})))


@pytest.mark.parametrize("at_most", [False, True])
def test_a_lease_with_an_end_of_its_own_is_shortened_at_will(at_most: bool) -> None:
    """A shorter hold needs nothing of anybody."""
    world = one()
    world.ask("a", hold=50 * SECOND)
    world.hold("a", 20 * SECOND, at_most=at_most)
    assert until(world, "a") == 20


def test_requests_keep_their_booking_when_they_are_asked_again() -> None:
    """As all that was asked for."""
    made: LeaseRequest = make_ask("a", {"p": 1}, booking="b")
    world = one()
    world.ask("a", booking="b")
    again = request_again(world.lease("a"), LeaseId("x"), "x")
    assert (again.booking, again.borrow, again.priority) == (made.booking, None, 0)


def test_a_running_booking_is_changed_although_its_leases_have_its_units() -> None:
    """They are part of it, and do not count besides; what others have does."""
    world = World()
    world.pool("p", 2, ttl=HOUR)
    world.book("b", {"p": 1}, (10, 200))
    world.ask("other", hold=300 * SECOND)
    world.wait(20)
    world.ask("mine", booking="b")
    assert world.states() == {"other": "g", "mine": "g"}
    world.alter("b", note="x")
    with Refused(Code.BOOKED):
        world.alter("b", needs=(Need("p", 2),))
    world.release("other")
    world.alter("b", needs=(Need("p", 2),))


def test_leases_above_a_booking_that_was_made_smaller_still_count() -> None:
    """They have their units until their ends."""
    world = World()
    world.pool("p", 2, ttl=HOUR)
    world.book("b", {"p": 2}, (10, 200))
    world.wait(20)
    world.ask("mine", {"p": 2}, booking="b")
    world.alter("b", needs=(Need("p", 1),))
    with Refused(Code.BOOKED):
        world.book("c", {"p": 1}, (30, 100))


def test_a_cohort_and_bookings_refuse_each_other() -> None:
    """What a pool lends could not be kept for a booking."""
    world = World()
    world.pool("p", 1, cohort="c")
    with Refused(Code.INVALID):
        world.book("b", {"p": 1}, (100, 200))
    with Refused(Code.INVALID):
        world.pool("q", 1, cohort="c", book_ahead=HOUR)
    world.pool("q", 1)
    world.book("b", {"q": 1}, (100, 200))
    with Refused(Code.INVALID):
        world.pool("q", 1, cohort="c")
    world.cancel("b")
    world.wait(1)
    world.pool("q", 1, cohort="c")


def test_units_of_a_fair_share_are_booked_alone() -> None:
    """As they are asked for: a request for its units could name no other pool."""
    world = World()
    world.pool("p", 2, fair_share=FairShare(by="owner", half_life=HOUR))
    world.pool("q", 2)
    with Refused(Code.INVALID):
        world.book("b", {"p": 1, "q": 1}, (100, 200))
    world.book("b", {"p": 1}, (100, 200))


def test_a_booking_goes_before_a_smaller_share() -> None:
    """Its units are kept for it, whatever its owner has used before."""
    world = World()
    world.pool("p", 1, ttl=HOUR, fair_share=FairShare(by="owner", half_life=HOUR))
    world.ask("used", owner="me", hold=50 * SECOND)
    world.book("b", {"p": 1}, (100, 200))
    world.wait(60)
    assert world.states() == {"used": "hold_over"}
    world.ask("other", owner="other", hold=200 * SECOND)
    world.ask("mine", owner="me", booking="b")
    assert world.states() == {"used": "hold_over", "other": "w", "mine": "w"}
    world.wait(41)
    assert world.states() == {"used": "hold_over", "other": "w", "mine": "g"}


def test_where_units_are_booked_nobody_is_asked_to_stop() -> None:
    """What the ticket waits for may be the booking; the control asks once that is over."""
    world = one()
    world.ask("low", preemptible=10 * SECOND, hold=90 * SECOND)
    world.ask("high", priority=1, hold=300 * SECOND)
    assert world.lease("low").stop_until is None
    world.cancel("b")
    world.sweep()
    assert world.lease("low").preempted_by == "high"


def test_who_is_moved_to_the_front_is_ahead_of_all_that_have_not_booked() -> None:
    """The second one that is moved is before the first one, and both are behind the booking."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.book("b", {"p": 1}, (10, 100))
    world.ask("booked", booking=BookingId("b"))
    for name in ("one", "two", "three"):
        world.ask(name, hold=60 * SECOND)
    for name in ("two", "three"):
        world.move(name)
    places = sorted((order(world.lease(name)), name) for name in world.states())
    assert [name for _, name in places] == ["booked", "three", "two", "one"]
    assert world.lease("three").priority == 2
