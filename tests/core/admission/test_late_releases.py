"""A name that is released late: by whom the lease proxy handed it to before."""

import pytest

from moorage.core.admission.compat import lease_proxy, slots_by_name
from moorage.core.admission.late_releases import LATE, LATE_MAX, OWNER
from moorage.core.admission.requests import NEVER, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import Refused, World, wish

MINUTE = 60 * SECOND
HOLD = 20 * MINUTE


@pytest.fixture
def world() -> World:
    """Return a world with one slot `s` in a pool `p` whose leases are held for 20 minutes."""
    made = World()
    made.pool("p", None, hold=HOLD)
    made.slots("p", "s")
    return made


def acquire(world: World, key: str) -> None:
    """Acquire through the proxy, and be told the name."""
    world.ask(key, owner=OWNER)
    assert world.states()[key] == "g"
    world.do((lease_proxy.confirm(world.facts, world.moment, LeaseId(key)), None))


def release(world: World, name: str = "s") -> None:
    """Release by name, as scripts do."""
    world.do((lease_proxy.give_back(world.facts, world.moment, world.wall, name), None))


def test_a_late_release_leaves_the_next_holder_its_lease(world: World) -> None:
    """Who held until its hold was over gives back nothing; the next release is its successor's."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    assert world.states()["first"] == "hold_over"
    acquire(world, "second")
    world.wait(60)
    release(world)
    assert world.states()["second"] == "g"
    release(world)
    assert world.states()["second"] == "released"


def test_a_late_release_after_a_revocation(world: World) -> None:
    """The holder may not know that its lease was taken from it."""
    acquire(world, "first")
    world.release("first", cause="revoked")
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "g"


def test_a_late_release_of_a_slot_that_is_free(world: World) -> None:
    """It is used up then, too, and not taken for that of a later holder once more."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    release(world)
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_who_gave_back_is_not_expected_again(world: World) -> None:
    """Nothing is remembered of a lease that was released in time."""
    acquire(world, "first")
    release(world)
    assert world.facts.slots["p"]["s"].late == ()
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_a_lease_whose_names_were_never_told_is_not_expected(world: World) -> None:
    """Its caller has gone before: it knows no name that it could release."""
    world.ask("first", owner=OWNER)
    world.wait(61)
    assert world.states()["first"] == "ttl_over"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_a_native_holder_is_left_alone(world: World) -> None:
    """Neither a late release nor any other of the proxy ends a lease that is not the proxy's."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    world.ask("native", owner="me")
    release(world)
    release(world)
    assert world.states()["native"] == "g"
    assert world.facts.slots["p"]["s"].late == ()


def test_the_memory_has_an_end_in_time(world: World) -> None:
    """A release that nobody has sent for four hours is not expected any more."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    world.wait(LATE // SECOND - 1)
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "g"
    world.release("second", cause="revoked")
    world.wait(LATE // SECOND)
    acquire(world, "third")
    release(world)
    assert world.states()["third"] == "released"


def test_the_memory_has_an_end_in_number(world: World) -> None:
    """So many holders are expected at most; what is stored with a slot stays small."""
    for n in range(LATE_MAX + 3):
        acquire(world, f"{n}")
        world.release(f"{n}", cause="revoked")
    assert len(world.facts.slots["p"]["s"].late) == LATE_MAX
    acquire(world, "last")
    for _ in range(LATE_MAX):
        release(world)
    assert world.states()["last"] == "g"
    release(world)
    assert world.states()["last"] == "released"


def test_no_slot_is_lost_for_good_by_a_release_that_counted_for_another(world: World) -> None:
    """The release may have been the holder's own: a lease without a hold gets an end."""
    world.pool("p", None)
    acquire(world, "first")
    world.release("first", cause="revoked")
    acquire(world, "second")
    assert world.lease("second").hold_until is None
    release(world)
    assert world.states()["second"] == "g"
    world.wait(LATE // SECOND)
    assert world.states()["second"] == "hold_over"


def test_a_pool_may_bound_the_leases_of_the_proxy(world: World) -> None:
    """A lease whose holder was never told of it, or has gone, ends by the pool's `proxy_ttl`."""
    world.pool("p", None, proxy_ttl=5 * MINUTE)
    acquire(world, "first")
    world.wait(5 * 60 - 1)
    assert world.states()["first"] == "g"
    world.wait(1)
    assert world.states()["first"] == "hold_over"
    world.ask("native", owner="me", ttl=HOLD)
    world.wait(5 * 60)
    assert world.states()["native"] == "g", "it bounds nobody else"


def test_the_sooner_end_counts(world: World) -> None:
    """Of the hold of a pool and its `proxy_ttl`."""
    world.pool("p", None, hold=HOLD, proxy_ttl=2 * HOLD)
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    assert world.states()["first"] == "hold_over"


def test_an_unknown_name_is_refused(world: World) -> None:
    """Whatever is remembered of others."""
    with Refused(Code.SLOT_NOT_FOUND):
        release(world, "other")


def test_what_nobody_was_told_of_ends_where_leases_are_kept() -> None:
    """In a pool that keeps unheard leases, too, a lease of the proxy has a TTL until it is told."""
    world = World()
    world.pool("p", None, expire="keep")
    world.slots("p", "s", "t")
    world.ask("untold", owner=OWNER)
    acquire(world, "told")
    world.ask("native")
    world.ask("waits")
    world.wait(61)
    assert world.states() == {"untold": "ttl_over", "told": "g", "native": "g", "waits": "w"}


@pytest.mark.parametrize("way", ["Boskos", "an operator"])
def test_a_late_release_after_somebody_else_gave_the_slot_back(world: World, way: str) -> None:
    """The caller of the proxy does not learn of it: its own release is still to come."""
    acquire(world, "first")
    if way == "Boskos":
        made = slots_by_name.release(world.facts, world.moment, world.wall, "s", "free", OWNER)
        world.do((made, None))
    else:
        world.release("first")
    assert world.states()["first"] == "revoked"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "g"
    release(world)
    assert world.states()["second"] == "released"


def test_what_the_proxy_itself_gives_back_is_not_expected(world: World) -> None:
    """It does so for callers that have gone before they were told a name."""
    acquire(world, "first")
    world.release("first", Proof(OWNER))
    assert world.states()["first"] == "released"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


@pytest.mark.parametrize("owner", [OWNER, "boskos:x"])
def test_nobody_retries_for_who_could_not_learn_of_it(world: World, owner: str) -> None:
    """The clients of Boskos and of the proxy know slots, not leases: theirs stay as they are."""
    world.ask("first", owner=owner, ttl=NEVER)
    with Refused(Code.INVALID):
        world.retry("first", wish("again", {"p": 1}, owner=owner))
    assert world.states() == {"first": "g"}
    assert world.facts.slots["p"]["s"].lease == "first"


def test_slots_cannot_be_given_back_by_number(world: World) -> None:
    """Who knows a lease's id, which is no secret, cannot give back units that have names."""
    world.slots("p", "t")
    lease = "6e0f3c52-0000-4000-8000-000000000001"
    world.ask(lease, {"p": 2}, owner=OWNER)
    world.do((lease_proxy.confirm(world.facts, world.moment, LeaseId(lease)), None))
    for number in range(2):
        with Refused(Code.SLOT_NOT_FOUND):
            release(world, f"{lease}.{number}")
    assert (world.states()[lease], world.facts.pools["p"].occupied) == ("g", 2)
    release(world, "s")
    assert world.facts.pools["p"].occupied == 1
    release(world, "t")
    assert (world.states()[lease], world.facts.pools["p"].occupied) == ("released", 0)
