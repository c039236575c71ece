"""Boskos' acquire by polling: which request gets which slot, under a manual clock."""

import pytest
from msgspec import structs

from moorage.core.admission import pools
from moorage.core.admission.admit import admit
from moorage.core.admission.compat import boskos
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Pacing, Slot
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import KEY_LENGTH_MAX
from tests.core.admission.boskos_pools import NOW, Ranch, facts_with, grows, slot
from tests.core.admission.build import spec

MINUTE = 60 * SECOND


@pytest.fixture(params=[True, False], ids=["strict", "safe"])
def strict(request: pytest.FixtureRequest) -> bool:
    """Run a test in strict and in safe mode."""
    return bool(request.param)


def ranch_with(strict: bool, *slots: Slot, **growths: object) -> Ranch:
    """Return a ranch with these slots and growing pools."""
    return Ranch(facts_with(*slots, **growths), strict=strict)  # type: ignore[arg-type] # passed on


def test_no_such_type(strict: bool) -> None:
    """An acquire of a type without slots is refused as unknown."""
    for ranch in (
        ranch_with(strict),
        ranch_with(strict, slot("a", "other")),
        ranch_with(strict, slot("a", "t")),
    ):
        with pytest.raises(Error) as refusal:
            ranch.acquire(pool="t2", request_id="id")
        assert refusal.value.code is Code.POOL_UNKNOWN


def test_no_free_slot(strict: bool) -> None:
    """A slot in another state, or with an owner, is not granted and does not change."""
    ranch = ranch_with(strict, slot("a", "t", "dirty"), slot("b", "t", "free", "him"))
    before = ranch.slot("a"), ranch.slot("b")
    assert ranch.acquire() is None
    assert ranch.acquire("id") is None
    assert (ranch.slot("a"), ranch.slot("b")) == before
    ranch.check()


def test_a_free_slot(strict: bool) -> None:
    """An acquired slot gets the owner, the requested state and the present time."""
    ranch = ranch_with(strict, slot("a", "t"))
    assert ranch.acquire("id", owner="o", dest="d") == "a"
    taken = ranch.slot("a")
    assert (taken.owner, taken.state, taken.updated_at) == ("o", "d", NOW)
    ranch.check()


def test_the_longest_free_slot_first(strict: bool) -> None:
    """Four acquires and releases use four different slots."""
    ranch = ranch_with(strict, *(slot(name, "t") for name in "abcd"))
    names = []
    for n in range(4):
        ranch.pass_seconds(1)
        name = ranch.acquire(f"id-{n}")
        assert name is not None
        names.append(name)
        ranch.release(name)
    assert sorted(names) == ["a", "b", "c", "d"]
    ranch.check()


def test_priority(strict: bool) -> None:
    """A waiting request id is served before others, and after them once it was served."""
    ranch = ranch_with(strict, slot("a", "t", "free", "him"))
    assert ranch.acquire("id-1") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("") is None
    assert ranch.acquire("id-2") is None
    assert ranch.acquire("id-1") == "a"
    ranch.release("a")
    assert ranch.acquire("id-1") is None
    assert ranch.acquire("") is None
    ranch.pass_seconds(121)
    assert ranch.acquire("") == "a"
    ranch.check()


def test_on_demand(strict: bool) -> None:
    """A growing type makes one slot, in its initial state, per new request id, up to its most."""
    ranch = ranch_with(strict, slot("z", "other"), t=grows(0, 2, "dirty"))

    def made() -> list[str]:
        return [one.state for one in ranch.facts.slots["t"].values()]

    for request_id, expected in (("", 0), ("id-1", 1), ("id-1", 1), ("id-2", 2), ("id-3", 2)):
        try:
            assert ranch.acquire(request_id) is None
        except Error as refusal:
            assert (refusal.code, expected) == (Code.POOL_UNKNOWN, 1 if request_id else 0)
        assert made() == ["dirty"] * expected
    ranch.check()


def test_on_demand_served_at_once() -> None:
    """In safe mode a slot that was made for a request serves it in the same poll."""
    ranch = ranch_with(False, t=grows(0, 1))
    made = ranch.acquire("id-1")
    assert made is not None
    ranch.release(made)
    assert ranch.acquire("id-2") == made, "one is made only if none is free"
    strictly = ranch_with(True, t=grows(0, 1))
    with pytest.raises(Error):
        strictly.acquire("id-1")
    assert strictly.acquire("id-1") == "made-1"


def test_ranks() -> None:
    """Strict: rank k takes the k-th free slot, and a request without an id is behind all.

    So a later request may be served first, but never with the slot of an earlier one.
    """
    ranch = ranch_with(True, *(slot(name, "t", "dirty", "him") for name in "abc"))
    for n in (1, 2, 3):
        assert ranch.acquire(f"id-{n}") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("id-2") is None
    ranch.pass_seconds(1)
    ranch.release("b", owner="him")
    assert ranch.acquire("id-3") is None
    assert ranch.acquire("") is None
    assert ranch.acquire("id-2") == "b"
    assert ranch.acquire("id-3") is None
    assert ranch.acquire("id-1") == "a"
    ranch.check()


def test_an_id_is_no_key_when_strict() -> None:
    """Strict: two calls with one id get two slots, since the second is a new request."""
    ranch = ranch_with(True, slot("a", "t"), slot("b", "t"))
    assert {ranch.acquire("id"), ranch.acquire("id")} == {"a", "b"}
    ranch.check()


def ranch_with_two_tickets() -> Ranch:
    """Return a strict ranch, on the minute: id-1 waits before id-2 for the only slot."""
    ranch = ranch_with(True, slot("a", "t", "busy", "him"))
    ranch.now = Instant(MINUTE * 1_000)
    assert ranch.acquire("id-1") is None
    assert ranch.acquire("id-2") is None
    return ranch


def test_an_abandoned_request_blocks_for_thirty_seconds() -> None:
    """Strict: an abandoned request keeps its rank until 30 s after its last poll."""
    ranch = ranch_with_two_tickets()
    ranch.release("a", owner="him")
    ranch.pass_seconds(30)
    assert ranch.acquire("id-2") is None
    ranch.pass_seconds(0.001)
    assert ranch.acquire("id-2") == "a"


def test_an_expired_request_keeps_its_place() -> None:
    """Strict: a request that polls again after 30 s but before the collection keeps its place."""
    ranch = ranch_with_two_tickets()
    ranch.pass_seconds(31)
    assert ranch.acquire("id-2") is None
    assert ranch.acquire("id-1") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("id-2") is None
    assert ranch.acquire("id-1") == "a"
    ranch.check()


def test_a_collected_request_is_a_new_one() -> None:
    """Strict: every full minute expired requests are forgotten, and then join at the end."""
    ranch = ranch_with_two_tickets()
    for _ in range(2):
        ranch.pass_seconds(25)
        assert ranch.acquire("id-2") is None
    ranch.pass_seconds(10.001)
    assert ranch.acquire("id-1") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("id-1") is None
    assert ranch.acquire("id-2") == "a"
    ranch.check()


def test_owner_and_destination_are_no_part_of_a_request() -> None:
    """Strict: the place belongs to the request id; the slot goes to the owner of the last poll."""
    ranch = ranch_with(True, slot("a", "t", "busy", "him"))
    assert ranch.acquire("id-1", owner="one") is None
    assert ranch.acquire("id-2", owner="two") is None
    assert ranch.acquire("id-1", owner="three") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("id-2", owner="two") is None
    assert ranch.acquire("id-1", owner="four", dest="d") == "a"
    assert (ranch.slot("a").owner, ranch.slot("a").state) == ("four", "d")
    ranch.check()


def test_each_state_has_its_own_queue(strict: bool) -> None:
    """Requests for dirty slots and for free slots do not wait for each other."""
    ranch = ranch_with(strict, slot("a", "t"), slot("b", "t", "dirty", "him"))
    assert ranch.acquire("janitor", state="dirty") is None
    assert ranch.acquire("user") == "a"
    ranch.release("b", "dirty", owner="him")
    assert ranch.acquire("other", state="dirty") is None
    assert ranch.acquire("janitor", state="dirty", dest="cleaning") == "b"
    ranch.check()


def test_a_lost_answer_is_given_again() -> None:
    """Safe: the same owner and id get the same slot again for a minute, then another one."""
    ranch = ranch_with(False, slot("a", "t"), slot("b", "t"))
    first = ranch.acquire("id")
    ranch.pass_seconds(59)
    assert ranch.acquire("id") == first
    assert ranch.acquire("id", owner="him") != first
    ranch.release({"a": "b", "b": "a"}[str(first)], owner="him")
    ranch.pass_seconds(2)
    assert ranch.acquire("id") not in (None, first)
    ranch.check()


def test_a_released_slot_is_not_given_again() -> None:
    """Safe: after a release, the same id makes a new request at the end of the line."""
    ranch = ranch_with(False, slot("a", "t"))
    assert ranch.acquire("id") == "a"
    ranch.release("a", "dirty")
    assert ranch.acquire("id") is None
    ranch.check()


def test_a_release_costs_no_place() -> None:
    """Safe: an id that waits for a second slot keeps its place when it releases its first."""
    ranch = ranch_with(False, slot("a", "t"), slot("b", "t", "busy", "him"))
    assert ranch.acquire("id") == "a"
    ranch.pass_seconds(61)
    assert ranch.acquire("id") is None
    assert ranch.acquire("later", owner="her") is None
    ranch.release("a", "dirty")
    assert ranch.acquire("id") is None
    assert ranch.facts.pools["t"].waiting == 2
    ranch.release("b", owner="him")
    assert ranch.acquire("later", owner="her") is None
    assert ranch.acquire("id") == "b"
    ranch.check()


def test_a_lost_answer_is_given_again_after_a_release() -> None:
    """Safe: the second slot of an id is returned again after the first was released."""
    ranch = ranch_with(False, slot("a", "t"), slot("b", "t"), slot("c", "t"))
    first = ranch.acquire("id")
    ranch.pass_seconds(61)
    second = ranch.acquire("id")
    ranch.release(str(first))
    assert ranch.acquire("id") == second
    ranch.check()


def test_a_request_with_nothing_set_aside_needs_no_sweep() -> None:
    """A silent request for which nothing is set aside needs no sweep."""
    ranch = ranch_with(False, slot("a", "t", "busy", "him"))
    assert ranch.acquire("id") is None
    ranch.pass_seconds(11)
    ranch.release("a", owner="him")
    assert ranch.acquire("janitor", state="dirty") is None
    ranch.apply(Changes())
    assert ranch.facts.pools["t"].wake_at is None


def test_a_pool_may_be_deleted_in_the_batch_of_a_request() -> None:
    """If the type is deleted earlier in the batch, an at-once request is refused as unknown."""
    ranch = ranch_with(False, slot("a", "t"))
    wish = AcquireRequest("t", "free", "busy", "me", "", LeaseId("lease"), "made")
    wanted = boskos.now_or_never(ranch.facts, ranch.moment, wish)
    ranch.facts.apply(pools.delete(ranch.facts, ranch.moment, "t")[0])
    ranch.facts.apply(admit(ranch.facts, ranch.moment, NOW, at_once=[wanted]))
    assert not ranch.facts.leases
    with pytest.raises(Error) as refusal:
        boskos.acquired(ranch.facts, wish, wish.fresh)
    assert refusal.value.code is Code.POOL_UNKNOWN


def test_a_silent_client_is_passed_over() -> None:
    """Safe: 10 s after its last poll a request is passed over, but keeps its place."""
    ranch = ranch_with(False, slot("a", "t", "busy", "him"))
    assert ranch.acquire("id-1") is None
    ranch.pass_seconds(5)
    assert ranch.acquire("id-2") is None
    ranch.release("a", owner="him")
    assert ranch.acquire("id-2") is None
    ranch.pass_seconds(5.1)
    assert ranch.acquire("id-2") == "a"
    ranch.release("a")
    assert ranch.acquire("id-1") == "a"
    ranch.check()


def test_limits_of_the_pool_hold(strict: bool) -> None:
    """A paused or paced pool, or a used-up quota, gives no slot and no error."""
    for change in (
        {"paused": True},
        {"quota": 0},
        {"pacing": Pacing(interval=MINUTE)},
    ):
        ranch = ranch_with(strict, slot("a", "t"), slot("b", "t", "free", "me"))
        pool = ranch.facts.pools["t"]
        if "paused" in change:
            pool = structs.replace(pool, paused=True)
        else:
            spec = structs.replace(pool.spec, **change)
            pool = structs.replace(pool, spec=spec, paced_at=Instant(NOW + 1))
        ranch.facts.pools["t"] = pool
        ranch.facts.held["t", "boskos:me"] = 1
        assert ranch.acquire("id") is None
        assert ranch.acquire("") is None


def test_by_name(strict: bool) -> None:
    """Slots are taken by name, of any type, each with a separate lease."""
    ranch = ranch_with(strict, slot("a", "t"), slot("b", "u"), slot("c", "t"))
    taken = ranch.take("a", "b")
    assert taken is not None and set(taken) == {"a", "b"}
    ranch.release("a")
    assert (ranch.slot("a").owner, ranch.slot("b").owner) == ("", "me")
    ranch.check()


def test_by_name_and_one_missing() -> None:
    """Strict keeps the available slots but reports none; safe takes all or nothing."""
    strictly = ranch_with(True, slot("a", "t"), slot("b", "t", "dirty"))
    assert strictly.take("a", "b") is None
    assert strictly.slot("a").owner == "me"
    strictly.check()
    safely = ranch_with(False, slot("a", "t"), slot("b", "t", "dirty"))
    with pytest.raises(Error) as refusal:
        safely.take("a", "b")
    assert refusal.value.message == "no available resource free, try again later."
    assert safely.slot("a").owner == ""
    safely.check()


def test_long_names(strict: bool) -> None:
    """A request id may have any length; the length of an owner is bounded."""
    ranch = ranch_with(strict, slot("a", "t", "busy", "him"))
    long = "x" * 60_000
    assert ranch.acquire(long) is None
    assert ranch.acquire(long + "y") is None
    ranch.release("a", owner="him")
    assert ranch.acquire(long + "y") is None
    assert ranch.acquire(long) == "a"
    assert all(len(lease.key) <= KEY_LENGTH_MAX for lease in ranch.facts.leases.values())
    with pytest.raises(Error) as refusal:
        ranch.acquire("id", owner="o" * 256)
    assert refusal.value.code is Code.LIMIT_EXCEEDED


def test_a_type_that_comes_back_without_slots_in_the_same_batch() -> None:
    """An at-once request for a type that was replaced by a pool without slots gets nothing."""
    ranch = ranch_with(False, slot("a", "t"))
    facts, moment = ranch.facts, ranch.moment
    wish = AcquireRequest("t", "free", "busy", "me", "", LeaseId("new"), "")
    asked = boskos.now_or_never(facts, moment, wish)
    facts.apply(pools.delete(facts, moment, "t")[0])
    facts.apply(pools.put(facts, moment, NOW, "t", spec(1))[0])
    assert not admit(facts, moment, NOW, at_once=[asked]).leases
    with pytest.raises(Error) as refusal:
        boskos.acquired(facts, wish, wish.fresh)
    assert refusal.value.code is Code.POOL_UNKNOWN
