"""Late releases of a name by an earlier holder through the lease proxy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.admission import expiry
from moorage.core.admission.compat import lease_proxy, slots_by_name
from moorage.core.admission.late_releases import CANDIDATES_MAX, LATE, LATE_MAX, owed
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.requests import NEVER, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from tests.core.admission.build import Refused, World, make_ask

MINUTE = 60 * SECOND
HOLD = 20 * MINUTE


@pytest.fixture
def world() -> World:
    """Return a world with one slot `s` in a pool `p` with a hold of 20 minutes."""
    made = World()
    made.pool("p", None, hold=HOLD)
    made.slots("p", "s")
    return made


def acquire(world: World, key: str) -> None:
    """Acquire through the proxy; the names were read."""
    world.ask(key, owner=LEASE_PROXY, attended=True)
    assert world.states()[key] == "g"
    world.do((expiry.confirm(world.facts, world.moment, LeaseId(key)), None))


def release(world: World, name: str = "s") -> None:
    """Release by name through the proxy, as scripts do."""
    world.do((lease_proxy.give_back(world.facts, world.moment, world.wall, name), None))


def test_a_late_release_leaves_the_next_holder_its_lease(world: World) -> None:
    """The first release is attributed to the expired holder, the second to its successor."""
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
    """A holder may not know that its lease was revoked, so its release is still expected."""
    acquire(world, "first")
    world.release("first", cause="revoked")
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "g"


def test_a_late_release_of_a_slot_that_is_free(world: World) -> None:
    """A late release of a free slot is used up, and not attributed again under a later holder."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    release(world)
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_no_late_release_after_a_release(world: World) -> None:
    """No late release is expected of a holder that released in time."""
    acquire(world, "first")
    release(world)
    assert world.facts.slots["p"]["s"].late == ()
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_no_late_release_of_unreturned_names(world: World) -> None:
    """A caller that left before its names were returned knows no name to release."""
    world.ask("first", owner=LEASE_PROXY, attended=True)
    world.wait(15)
    assert world.states()["first"] == "unconfirmed"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


def test_a_native_holder_is_left_alone(world: World) -> None:
    """No release through the proxy ends a native lease."""
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    world.ask("native", owner="me")
    release(world)
    release(world)
    assert world.states()["native"] == "g"
    assert world.facts.slots["p"]["s"].late == ()


def test_expected_releases_are_bounded_in_time(world: World) -> None:
    """A release is no longer expected after `LATE` (four hours)."""
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


def test_expected_releases_are_bounded_in_number(world: World) -> None:
    """At most `LATE_MAX` late releases are expected per slot, to bound what is stored."""
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


def test_a_misattributed_release_frees_the_slot_later(world: World) -> None:
    """The release may have been the present holder's: its lease gets a hold if it has none."""
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
    """A lease of the proxy ends after the pool's `proxy_ttl`, a native lease does not."""
    world.pool("p", None, proxy_ttl=5 * MINUTE)
    acquire(world, "first")
    world.wait(5 * 60 - 1)
    assert world.states()["first"] == "g"
    world.wait(1)
    assert world.states()["first"] == "hold_over"
    world.ask("native", owner="me", ttl=HOLD)
    world.wait(5 * 60)
    assert world.states()["native"] == "g", "it only bounds leases of the proxy"


def test_the_sooner_end_counts(world: World) -> None:
    """The sooner of the pool's hold and its `proxy_ttl` ends a lease."""
    world.pool("p", None, hold=HOLD, proxy_ttl=2 * HOLD)
    acquire(world, "first")
    world.wait(HOLD // SECOND)
    assert world.states()["first"] == "hold_over"


def test_an_unknown_name_is_refused(world: World) -> None:
    """An unknown name is refused, even if late releases of other names are expected."""
    with Refused(Code.SLOT_NOT_FOUND):
        release(world, "other")


def test_an_unconfirmed_lease_ends_where_leases_are_kept() -> None:
    """Even with `expire: keep` an unconfirmed lease of the proxy ends within seconds."""
    world = World()
    world.pool("p", None, expire="keep")
    world.slots("p", "s", "t")
    world.ask("unconfirmed", owner=LEASE_PROXY, attended=True)
    acquire(world, "confirmed")
    world.ask("native")
    world.ask("waits")
    world.wait(15)
    assert world.states() == {
        "unconfirmed": "unconfirmed",
        "confirmed": "g",
        "native": "g",
        "waits": "w",
    }


@pytest.mark.parametrize("way", ["Boskos", "an operator"])
def test_a_late_release_after_another_release(world: World, way: str) -> None:
    """The caller of the proxy does not learn of the release, so its own is still expected."""
    acquire(world, "first")
    if way == "Boskos":
        made = slots_by_name.release(
            world.facts, world.moment, world.wall, "s", "free", LEASE_PROXY
        )
        world.do((made, None))
    else:
        world.release("first")
    assert world.states()["first"] == "revoked"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "g"
    release(world)
    assert world.states()["second"] == "released"


def test_no_late_release_after_a_release_by_the_proxy(world: World) -> None:
    """The proxy releases for callers that left before they got a name to release."""
    acquire(world, "first")
    world.release("first", Proof(LEASE_PROXY))
    assert world.states()["first"] == "released"
    acquire(world, "second")
    release(world)
    assert world.states()["second"] == "released"


@pytest.mark.parametrize("owner", [LEASE_PROXY, "boskos:x"])
def test_leases_of_boskos_and_the_proxy_cannot_be_retried(world: World, owner: str) -> None:
    """Leases of Boskos and the proxy cannot be retried: their clients know slots, not leases."""
    world.ask("first", owner=owner, ttl=NEVER)
    with Refused(Code.INVALID):
        world.retry("first", make_ask("again", {"p": 1}, owner=owner))
    assert world.states() == {"first": "g"}
    assert world.facts.slots["p"]["s"].lease == "first"


def test_slots_cannot_be_released_by_number(world: World) -> None:
    """Named units cannot be released by lease id and number, since the id is not secret."""
    world.slots("p", "t")
    lease = "6e0f3c52-0000-4000-8000-000000000001"
    world.ask(lease, {"p": 2}, owner=LEASE_PROXY, attended=True)
    world.do((expiry.confirm(world.facts, world.moment, LeaseId(lease)), None))
    for number in range(2):
        with Refused(Code.SLOT_NOT_FOUND):
            release(world, f"{lease}.{number}")
    assert (world.states()[lease], world.facts.pools["p"].occupied) == ("g", 2)
    release(world, "s")
    assert world.facts.pools["p"].occupied == 1
    release(world, "t")
    assert (world.states()[lease], world.facts.pools["p"].occupied) == ("released", 0)


def gone(world: World, key: str) -> None:
    """Revoke a lease whose holder is gone, ended or not."""
    made = lease_proxy.holder_gone(world.facts, world.moment, world.wall, LeaseId(key), "")
    world.do(made)


def expected(world: World) -> list[tuple[str, ...]]:
    """Return whose releases of the slot are expected."""
    return [one.leases for one in owed(world.facts.slots["p"]["s"], world.moment.at)]


def test_a_holder_that_is_gone_releases_nothing(world: World) -> None:
    """Its lease is revoked, and the next release is that of the next holder, round after round."""
    acquire(world, "dead")
    gone(world, "dead")
    assert (world.states()["dead"], expected(world)) == ("revoked", [])
    for key in ("one", "two", "three"):
        acquire(world, key)
        release(world)
        assert world.states()[key] == "released"


@pytest.mark.parametrize("end", ["revoked", "hold_over"])
def test_a_holder_may_be_declared_gone_later(world: World, end: str) -> None:
    """After a revocation without this word, or the end of the hold, it still can be said."""
    acquire(world, "dead")
    if end == "revoked":
        world.release("dead", cause="revoked")
    world.wait(HOLD // SECOND)
    assert (world.states()["dead"], expected(world)) == (end, [("dead",)])
    gone(world, "dead")
    assert expected(world) == []
    acquire(world, "next")
    release(world)
    assert world.states()["next"] == "released"


def test_a_release_that_counted_as_that_of_a_dead_holder_is_put_right(world: World) -> None:
    """It was the present holder's own, whose lease is over at once, also rounds later."""
    acquire(world, "dead")
    world.release("dead", cause="revoked")
    acquire(world, "next")
    release(world)
    assert (world.states()["next"], expected(world)) == ("g", [])
    gone(world, "dead")
    assert world.states()["next"] == "released"
    assert "dead" in world.lease("next").detail
    for key in ("again", "more", "last"):
        acquire(world, key)
        if key == "again":
            world.release("again", cause="revoked")
            continue
        release(world)
        world.wait(HOLD // SECOND)
    assert expected(world) == [("again", "more", "last")]
    gone(world, "again")
    assert expected(world) == []


def test_a_native_lease_is_not_ended_by_what_is_put_right(world: World) -> None:
    """A release while a native lease has the slot can only be that of an earlier holder."""
    acquire(world, "dead")
    world.release("dead", cause="revoked")
    world.ask("native", owner="me")
    release(world)
    gone(world, "dead")
    assert world.states()["native"] == "g"


def test_what_a_record_names_is_bounded(world: World) -> None:
    """However many rounds pass, a record has at most `CANDIDATES_MAX` leases."""
    acquire(world, "first")
    world.release("first", cause="revoked")
    for n in range(CANDIDATES_MAX + 3):
        acquire(world, f"{n}")
        release(world)
        world.wait(HOLD // SECOND)
    ((first, *others),) = expected(world)
    assert (first, len(others)) == ("first", CANDIDATES_MAX - 1)
    assert others[-1] == f"{CANDIDATES_MAX + 2}", "the last holder is always among them"


class Holder:
    """A caller of the proxy as it really is."""

    def __init__(self) -> None:
        self.released = self.dead = self.declared = False


@given(steps=st.lists(st.sampled_from(["job", "late", "dead", "over", "gone", "own"]), max_size=40))
def test_no_holder_loses_its_slot_and_none_keeps_it_for_ever(steps: list[str]) -> None:
    """Holders are in time, come late, or are gone, and the latter is said at some time.

    No lease ends by the release of another. Once all late ones have come, and all that are gone are
    known to be, nothing is expected, and who has released its name has no lease.
    """
    world = World()
    world.pool("p", None, hold=HOLD)
    world.slots("p", "s")
    holders: dict[str, Holder] = {}

    def present() -> str | None:
        return world.facts.slots["p"]["s"].lease

    def releases(key: str | None) -> None:
        one = holders.get(key or "")
        if one is not None and not (one.released or one.dead):
            one.released = True
            release(world)

    def step(word: str) -> None:
        living = [key for key, one in holders.items() if not (one.released or one.dead)]
        late = [key for key in living if key != present()]
        lost = [key for key, one in holders.items() if one.dead and not one.declared]
        if word == "job" and present() is None:
            key = f"{len(holders)}"
            holders[key] = Holder()
            acquire(world, key)
        elif word == "own":
            releases(present())
        elif word == "late" and late:
            releases(late[0])
        elif word == "dead" and present() in living:
            holders[str(present())].dead = True
        elif word == "over":
            world.wait(HOLD // SECOND)
        elif word == "gone" and lost:
            holders[lost[-1]].declared = True
            gone(world, lost[-1])
        for key, state in world.states().items():
            assert state != "released" or holders[key].released, "by the release of another"

    for word in steps:
        step(word)
    for _ in holders:
        step("late")
        step("gone")
    left = present()
    assert [one for one in expected(world) if left not in one] == []
    assert left is None or not holders[left].released, "it has released its slot, and keeps it"
