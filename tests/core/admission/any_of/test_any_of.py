"""One ticket in several lines: granted once, by the first alternative that is free."""

import pytest

from moorage.core.admission.model import Need
from moorage.core.admission.requests import request_again
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.wishes import wanted_of
from tests.core.admission.build import Refused, World
from tests.core.admission.sums import sums_differ

A, B = {"a": 1}, {"b": 1}


def two(a: int = 1, b: int = 1, **more: object) -> World:
    """Return two pools without leases."""
    world = World()
    world.pool("a", a, **more)
    world.pool("b", b)
    return world


def full() -> World:
    """Return two pools of one unit each, which are full."""
    world = two()
    world.ask("x", A)
    world.ask("y", B)
    return world


def needs(world: World, key: str) -> dict[str, int]:
    """Return the needs of a lease by pool."""
    return {need.pool: need.units for need in world.lease(key).needs}


def right(world: World) -> None:
    """Check the sums of all lines."""
    assert sums_differ(world.facts) == []


def test_what_is_free_is_granted_at_once() -> None:
    """It leaves the other line in the same batch."""
    world = two()
    world.ask("x", A)
    world.ask("t", any_of=[A, B])
    assert needs(world, "t") == B
    assert world.facts.pools["a"].waiting == world.facts.pools["b"].waiting == 0
    right(world)


@pytest.mark.parametrize("freed", ["x", "y"])
def test_a_ticket_waits_in_all_lines_and_is_granted_once(freed: str) -> None:
    """By the pool that has a unit first; the other line does not know it any more."""
    world = full()
    world.ask("t", any_of=[A, B])
    assert [world.facts.pools[name].waiting for name in "ab"] == [1, 1]
    right(world)
    world.release(freed)
    assert needs(world, "t") == (A if freed == "x" else B)
    world.release("y" if freed == "x" else "x")
    assert [world.facts.pools[name].occupied for name in "ab"].count(0) == 1
    right(world)


def test_it_keeps_its_place_in_each_line() -> None:
    """Earlier tickets go first, later ones after it, in either line."""
    world = full()
    world.ask("before", A)
    world.ask("t", any_of=[A, B])
    world.ask("after", B)
    world.release("x")
    assert world.holders("a") == ["before"]
    world.release("y")
    assert world.holders("b") == ["t"]
    right(world)


def test_the_least_loaded_is_chosen() -> None:
    """By the share of the limit that it would occupy; of equal ones the first."""
    world = two(10, 2)
    world.ask("x", {"a": 5})
    world.ask("first", any_of=[B, A])
    assert needs(world, "first") == B, "1 of 2 is less than 6 of 10"
    world.ask("second", any_of=[B, A])
    assert needs(world, "second") == A
    world = two(2, 2)
    world.ask("equal", any_of=[B, A])
    assert needs(world, "equal") == B


def test_one_batch_spreads_its_grants() -> None:
    """Each grant counts for the choice of the next."""
    world = two(3, 3)
    for name in "ab":
        world.pause(name)
    for n in range(4):
        world.ask(f"t{n}", any_of=[A, B])
    world.pause("a", False)
    world.pause("b", False)
    assert len(world.holders("a")) == 3
    world = two(3, 3)
    world.ask("x", {"a": 3, "b": 3})
    for n in range(4):
        world.ask(f"t{n}", any_of=[A, B])
    world.release("x")
    assert [len(world.holders(name)) for name in "ab"] == [2, 2]


def test_the_first_that_fits_is_chosen_if_so_asked() -> None:
    """Whatever the load is."""
    world = two(10, 10)
    world.ask("x", {"b": 9})
    world.ask("t", any_of=[B, A], in_order=True)
    assert needs(world, "t") == B


def test_common_needs_belong_to_each_alternative() -> None:
    """They are a gang with the alternative: all at once or none."""
    world = two()
    world.pool("c", 1)
    world.ask("x", {"c": 1})
    world.ask("t", {"c": 1}, any_of=[A, B])
    assert world.states()["t"] == "w"
    world.ask("later", A)
    assert world.states()["later"] == "w", "its unit of the first alternative is set aside"
    world.ask("other", B)
    assert world.states()["other"] == "g", "nothing is set aside in the second"
    world.release("x")
    assert needs(world, "t") == {"a": 1, "c": 1}
    right(world)


def test_units_are_set_aside_in_the_first_alternative_only() -> None:
    """It cannot starve there, and costs nobody elsewhere."""
    world = two(2, 2)
    world.ask("x1", A)
    world.ask("x2", A)
    world.ask("y1", B)
    world.ask("t", any_of=[{"a": 2}, {"b": 2}])
    world.ask("later", B)
    assert world.states()["later"] == "g"
    world.release("x1")
    world.ask("small", A)
    assert world.states()["small"] == "w"
    world.release("x2")
    assert needs(world, "t") == {"a": 2}
    right(world)


def test_it_does_not_starve_however_many_small_ones_come() -> None:
    """The small ones keep both pools loaded alike; the bound is that of the first alternative."""
    world = two(2, 2)
    for name in ("x1", "x2"):
        world.ask(name, A)
    for name in ("y1", "y2"):
        world.ask(name, B)
    world.ask("t", any_of=[{"a": 2}, {"b": 2}])
    for n, (pool, old) in enumerate([("a", "x1"), ("b", "y1"), ("b", "y2"), ("a", "x2")]):
        world.ask(f"small{n}", {pool: 1})
        world.release(old)
    assert needs(world, "t") == {"a": 2}


@pytest.mark.parametrize("barred", ["paused", "lowered", "quota"])
def test_a_barred_alternative_leaves_the_others(barred: str) -> None:
    """It is neither granted nor has units set aside, and comes back when the bar is gone."""
    world = two(2, 2)
    world.ask("y", {"b": 2})
    if barred == "paused":
        world.pause("a")
    elif barred == "lowered":
        world.pool("a", 0)
    else:
        world.pool("a", 2, quota=1)
        world.ask("own", A)
    world.ask("t", any_of=[A, B])
    assert world.states()["t"] == "w"
    if barred != "lowered":
        world.ask("later", A, owner="other")
        assert world.states()["later"] == ("g" if barred == "quota" else "w")
    world.release("y")
    assert needs(world, "t") == B
    right(world)


def test_a_bar_that_goes_grants() -> None:
    """The ticket waits on in the line of the pool that bars it."""
    world = full()
    world.pause("a")
    world.ask("t", any_of=[A, B])
    world.release("x")
    assert world.states()["t"] == "w"
    world.pause("a", False)
    assert needs(world, "t") == A


def test_a_pool_in_whose_line_it_waits_is_not_deleted() -> None:
    """As with every other ticket; later it may be."""
    world = full()
    world.ask("t", any_of=[A, B])
    world.release("x")
    assert needs(world, "t") == A
    world.release("y")
    from moorage.core.admission import pools

    world.do(pools.delete(world.facts, world.moment, "b"))
    assert world.states()["t"] == "g"


def test_a_request_is_refused_only_if_all_alternatives_are_impossible() -> None:
    """Those above the limit are passed over until it is raised."""
    world = two(1, 1)
    world.ask("t", any_of=[{"a": 2}, B])
    assert needs(world, "t") == B
    with Refused(Code.UNITS_ABOVE_LIMIT) as refused:
        world.ask("u", any_of=[{"a": 2}, {"b": 2}])
    assert "None of the 2 alternatives" in refused.message
    with Refused(Code.POOL_UNKNOWN):
        world.ask("v", any_of=[A, {"nowhere": 1}])


@pytest.mark.parametrize(
    ("any_of", "common", "said"),
    [
        ([A, A], {}, "twice: a"),
        ([{}, A], {}, "at least one need"),
        ([{"a": 1}, B], {"a": 1}, "only once"),
        ([{f"p{n}": 1} for n in range(17)], {}, "at most 16 alternatives"),
        ([{f"p{n}{m}": 1 for m in range(13)} for n in range(5)], {}, "at most 64 needs"),
        ([{f"p{m}": 1 for m in range(17)}, A], {}, "at most 16 needs"),
    ],
)
def test_requests_are_bounded(
    any_of: list[dict[str, int]], common: dict[str, int], said: str
) -> None:
    """A duplicate is a mistake, and so is what could not be stored."""
    with Refused(Code.INVALID) as refused:
        two().ask("t", common, any_of=any_of)
    assert said in refused.message


def test_one_alternative_is_none() -> None:
    """Its needs are added to the common ones."""
    world = two()
    world.ask("t", A, any_of=[B])
    assert needs(world, "t") == {"a": 1, "b": 1}
    assert world.lease("t").alternatives == ()


def test_a_full_line_refuses() -> None:
    """A ticket stands in every line, so it needs a place in each."""
    world = two(1, 1, queue_max=1)
    world.ask("x", A)
    world.ask("y", B)
    world.ask("z", A)
    with Refused(Code.QUEUE_FULL) as refused:
        world.ask("t", any_of=[A, B])
    assert "'a'" in refused.message


def test_terms_are_those_of_the_granted_pools() -> None:
    """TTL, hold and `keep`, unless the request or a PATCH names them."""
    world = World()
    world.pool("a", 1, hold=20 * SECOND)
    world.pool("b", 1, hold=40 * SECOND, ttl=90 * SECOND, expire="keep")
    world.ask("x", A)
    world.ask("t", any_of=[A, B])
    lease = world.lease("t")
    assert (lease.ttl, lease.hold, lease.keep) == (90 * SECOND, 40 * SECOND, True)
    assert lease.hold_until == world.now + 40 * SECOND
    world.ask("y", any_of=[A, B], hold=7 * SECOND)
    world.ask("z", any_of=[A, B])
    world.hold("z", 9 * SECOND)
    world.release("t")
    world.release("y")
    assert world.lease("z").hold == 9 * SECOND


def test_labels_as_alternatives() -> None:
    """Slots with one label or another, of one pool."""
    world = World()
    world.slots("s", "s1", "s2")
    for name, region in (("s1", "eu"), ("s2", "us")):
        labelled(world, name, region)
    eu, us, asia = (
        (Need("s", 1, wanted=wanted_of({"region": region})),) for region in ("eu", "us", "asia")
    )
    world.ask("x", eu)
    world.ask("t", any_of=[eu, us])
    assert world.lease("t").slots == {"s": ("s2",)}
    world.ask("u", any_of=[asia, us, eu])
    assert world.facts.pools["s"].sought == {asia[0].wanted: 1, us[0].wanted: 1, eu[0].wanted: 1}
    right(world)
    world.release("x")
    assert world.lease("u").slots == {"s": ("s1",)}
    assert world.facts.pools["s"].sought == {}
    right(world)
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("v", any_of=[asia, (Need("s", 1, wanted=wanted_of({"region": "x"})),)])


def labelled(world: World, slot: str, region: str) -> None:
    """Label a slot."""
    from moorage.core.admission import slot_changes

    made, _, _ = slot_changes.label(world.facts, "s", slot, {"region": region})
    world.do((made, None))


def test_an_operator_forces_one_alternative() -> None:
    """It takes the least loaded pool over its limit; others are as before."""
    world = full()
    world.ask("t", any_of=[A, B])
    world.force("t")
    assert needs(world, "t") == A
    assert world.facts.pools["a"].occupied == 2
    right(world)
    with Refused(Code.INVALID):
        world.ask("u", any_of=[A, B], forced=True)


def test_a_move_to_the_front_is_in_all_lines() -> None:
    """It has one priority, so it precedes in each of its lines."""
    world = full()
    world.ask("a1", A)
    world.ask("b1", B, priority=3)
    world.ask("t", any_of=[A, B])
    world.move("t")
    world.release("y")
    assert world.holders("b") == ["t"]


def test_an_unconfirmed_grant_waits_in_all_lines_again() -> None:
    """Except for those of pools that were deleted meanwhile."""
    world = full()
    world.ask("t", any_of=[A, B], attended=True, heard_until=world.now + 60 * SECOND)
    world.release("x")
    assert needs(world, "t") == A
    world.wait(20)
    lease = world.lease("t")
    assert (lease.state, needs(world, "t")) == ("waiting", {"a": 1, "b": 1})
    assert [world.facts.pools[name].waiting for name in "ab"] == [1, 1]
    right(world)


def test_a_withdrawn_ticket_leaves_all_lines() -> None:
    """And one that nobody polls any more."""
    world = full()
    world.ask("t", any_of=[A, B])
    world.ask("u", any_of=[A, B], heard_until=world.now + 30 * SECOND)
    world.release("t")
    world.wait(31)
    assert world.states()["u"] == "unheard"
    assert [world.facts.pools[name].waiting for name in "ab"] == [0, 0]
    right(world)


def test_a_retry_keeps_the_alternative_it_has() -> None:
    """Or waits in all lines at the old place, if its pool does not keep it."""
    world = two()
    world.ask("t", any_of=[A, B])
    again = request_again(world.lease("t"), LeaseId("t2"), "t2")
    world.retry("t", again)
    assert needs(world, "t2") == A
    assert len(world.lease("t2").alternatives) == 2
    world.pause("a")
    world.retry("t2", request_again(world.lease("t2"), LeaseId("t3"), "t3"))
    assert needs(world, "t3") == B, "the pool that it had is paused"
    right(world)


def test_a_retry_forgets_pools_that_are_gone() -> None:
    """They are no alternatives any more."""
    from moorage.core.admission import pools

    world = two()
    world.ask("t", any_of=[A, B])
    world.do(pools.delete(world.facts, world.moment, "b"))
    world.retry("t", request_again(world.lease("t"), LeaseId("t2"), "t2"))
    assert needs(world, "t2") == A


def test_a_claim_that_does_not_fit_passes_the_ticket_over() -> None:
    """In all its lines; later tickets are granted."""
    world = two()
    world.claim = lambda lease: "too big" if lease.id == "t" else None
    world.ask("t", any_of=[A, B], allocations="x")
    assert world.states()["t"] == "w"
    assert world.lease("t").detail == "too big"
    assert needs(world, "t") == {"a": 1, "b": 1}
    world.ask("later", A)
    assert world.states()["later"] == "g"
    right(world)


def test_pacing_sends_it_elsewhere() -> None:
    """A pool that may not grant yet does not delay a grant by the other."""
    from moorage.core.admission.model import Pacing

    world = two(5, 5, pacing=Pacing(60 * SECOND))
    world.ask("x", A)
    world.ask("t", any_of=[A, B], in_order=True)
    assert needs(world, "t") == B
