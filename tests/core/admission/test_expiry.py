"""Tickets and leases that expire by TTL, hold or patience, and what an outage postpones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from moorage.core.admission import expiry
from moorage.core.admission.model import due_of, is_unheard
from moorage.core.admission.requests import NEVER
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.service_time import Moment, Timeline
from tests.core.admission.build import START, Refused, World


@pytest.fixture
def world() -> World:
    """Return a world with pool p of one unit."""
    made = World()
    made.pool("p", 1)
    return made


def outage(world: World, seconds: float) -> None:
    """Simulate an outage of this many seconds."""
    gap = round(seconds * SECOND)
    world.now += gap
    line = world.facts.timeline
    world.facts.timeline = structs.replace(
        line, downtime=line.downtime + gap, outage_ended_at=Instant(world.now)
    )


@pytest.fixture
def two() -> World:
    """Return a world with a pool `p` of two units."""
    made = World()
    made.pool("p", 2)
    return made


def test_a_silent_holder_loses_its_lease(world: World) -> None:
    """It ends at its TTL, and the next in line gets the unit in the same batch."""
    world.ask("a")
    world.ask("b")
    assert world.wait(59.9) == []
    assert world.wait(0.1) == ["a"]
    assert world.states() == {"a": "ttl_over", "b": "g"}


def test_a_kept_lease_still_occupies_its_units() -> None:
    """With `expire: keep` a lease outlives its TTL, and only its hold (or a release) ends it."""
    world = World()
    world.pool("p", 1, expire="keep")
    world.ask("a")
    world.ask("b")
    assert world.wait(10_000) == []
    lease = world.lease("a")
    assert lease.keep
    assert lease.heard_until is not None
    assert lease.heard_until < world.moment.alive
    world.renew("a")
    world.hold("a", 5 * SECOND)
    world.wait(5)
    assert world.states() == {"a": "hold_over", "b": "g"}


def test_a_hold_ends_a_renewed_lease(world: World) -> None:
    """A hold ends a lease even if the lease is renewed."""
    world.ask("a", hold=90 * SECOND)
    world.wait(50)
    world.renew("a")
    assert world.wait(40) == ["a"]
    assert world.lease("a").cause == "hold_over"


def test_an_abandoned_ticket_keeps_no_unit_idle(world: World) -> None:
    """A ticket that is not polled is withdrawn, so that the next one gets a freed unit at once."""
    world.ask("full", ttl=NEVER)
    world.ask("ghost", heard_until=world.moment.alive + 30 * SECOND)
    world.ask("b")
    world.wait(29)
    assert world.states()["ghost"] == "w"
    world.wait(1)
    assert world.states()["ghost"] == "unheard"
    world.release("full")
    assert world.states()["b"] == "g"


def test_an_abandoned_lease_ends_by_its_ttl(world: World) -> None:
    """If its client left before the grant, a lease occupies the unit for one TTL at most."""
    world.ask("full", ttl=NEVER)
    world.ask("ghost", heard_until=world.moment.alive + 30 * SECOND)
    world.ask("b")
    world.wait(20)
    world.release("full")
    world.wait(60)
    assert world.states() == {"full": "released", "ghost": "ttl_over", "b": "g"}


def test_an_outage_does_not_count(world: World) -> None:
    """After an outage the rest of the TTL counts, at least a third; a hold is not extended."""
    world.ask("a")
    world.wait(50)
    outage(world, 600)
    assert world.sweep() == []
    assert world.wait(19.9) == []
    assert world.wait(0.1) == ["a"], "a third of the TTL after the outage"
    world.ask("b")
    world.wait(10)
    outage(world, 600)
    assert world.wait(49.9) == []
    assert world.wait(0.1) == ["b"], "the rest of its TTL is longer than the grace"
    world.ask("c", hold=100 * SECOND)
    outage(world, 600)
    assert world.sweep() == ["c"]
    assert world.lease("c").cause == "hold_over"


def test_restarts_do_not_postpone_forever(world: World) -> None:
    """Despite repeated outages a lease ends after two TTLs of alive time."""
    world.ask("a")
    served = 0
    while world.lease("a").state == "granted":
        outage(world, 20)
        world.wait(10)
        served += 10
    assert served == 120


def test_an_outage_does_not_withdraw_tickets(world: World) -> None:
    """After an outage tickets have the rest of their patience, and keep their order."""
    world.ask("full", ttl=NEVER)
    for n in range(3):
        world.ask(f"w{n}", heard_until=world.moment.alive + 30 * SECOND)
    world.wait(20)
    outage(world, 3_600)
    world.sweep()
    world.wait(9)
    world.release("full")
    assert world.states() == {"full": "released", "w0": "g", "w1": "w", "w2": "w"}
    world.wait(1)
    assert world.states()["w1"] == "unheard"


def test_a_due_time_from_before_an_outage_is_postponed(world: World) -> None:
    """A due time from before an outage is stored again, without a change row."""
    world.ask("a")
    outage(world, 600)
    world.facts.due = list(world.facts.leases)
    made, ended = expiry.sweep(world.facts, world.moment, world.wall, world.facts.due)
    assert (made.postponed, ended, made.is_published, bool(made)) == ({"a"}, [], False, True)


def test_many_leases_end_in_one_sweep() -> None:
    """The units of all ended leases become free together, after their cooldown."""
    world = World()
    world.pool("p", 10, cooldown=5 * SECOND)
    for n in range(10):
        world.ask(f"a{n}")
    world.ask("b", {"p": 10}, ttl=NEVER)
    assert len(world.wait(60)) == 10
    pool = world.facts.pools["p"]
    assert (pool.occupied, sum(rest.units for rest in pool.resting)) == (0, 10)
    world.wait(5)
    assert world.states()["b"] == "g"
    assert world.now == START + 65 * SECOND


@given(
    st.none() | st.integers(-200, 200),
    st.none() | st.integers(1, 90),
    st.integers(-300, 300),
    st.integers(0, 200),
    st.none() | st.integers(0, 100),
)
def test_a_kept_lease_is_unheard_when_another_would_end(
    heard: int | None, ttl: int | None, now: int, downtime: int, since_outage: int | None
) -> None:
    """`is_unheard` of a kept lease is true exactly when the same lease without `keep` is due."""
    world = World()
    world.pool("p", 1, expire="keep")
    world.ask("a")
    lease = structs.replace(
        world.lease("a"),
        heard_until=None if heard is None else Instant(START + heard * SECOND),
        ttl=None if ttl is None else ttl * SECOND,
    )
    at = Instant(START + now * SECOND)
    ended_at = Instant(0 if since_outage is None else at - since_outage * SECOND)
    moment = Moment(at, Instant(at - downtime * SECOND), ended_at)
    timeline = Timeline(downtime=downtime * SECOND, outage_ended_at=ended_at)
    due = due_of(structs.replace(lease, keep=False), timeline)
    assert is_unheard(lease, moment) == (due is not None and due <= at)
    assert due_of(lease, timeline) is None
    assert not is_unheard(structs.replace(lease, keep=False), moment)


def test_a_hold_can_be_changed(two: World) -> None:
    """A hold can be changed or removed; a ticket's hold begins with its grant."""
    two.ask("a", hold=100 * SECOND, ttl=NEVER)
    two.wait(50)
    two.hold("a", 100 * SECOND)
    assert two.lease("a").hold_until == START + 150 * SECOND
    two.hold("a", None)
    assert two.due() is None
    two.ask("b", {"p": 2}, ttl=NEVER)
    two.hold("b", 7 * SECOND)
    two.release("a")
    assert two.lease("b").hold_until == START + 57 * SECOND


def test_an_earlier_end_of_a_hold_stays(two: World) -> None:
    """With `at_most` a hold is only ever shortened; one that is refused otherwise stays, too."""
    two.ask("a", hold=100 * SECOND, ttl=NEVER)
    two.wait(50)
    two.hold("a", 60 * SECOND, at_most=True)
    assert two.lease("a").hold_until == START + 100 * SECOND
    two.hold("a", 40 * SECOND, at_most=True)
    assert two.lease("a").hold_until == START + 90 * SECOND
    two.hold("a", None)
    two.hold("a", 60 * SECOND, at_most=True)
    assert two.lease("a").hold_until == START + 110 * SECOND
    with Refused(Code.INVALID):
        two.hold("a", None, at_most=True)
    two.ask("b", {"p": 2}, hold=5 * SECOND, ttl=NEVER)
    two.hold("b", 9 * SECOND, at_most=True)
    assert two.lease("b").hold == 5 * SECOND
    two.hold("b", 4 * SECOND, at_most=True)
    assert two.lease("b").hold == 4 * SECOND
