"""Acquiring by polls: who gets which slot, with a clock that moves by hand."""

import pytest
from msgspec import structs

from moorage.core.admission import pools
from moorage.core.admission.admit import admit
from moorage.core.admission.compat import boskos
from moorage.core.admission.compat.boskos import Wish
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Pacing, Slot
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import KEY_LENGTH_MAX
from tests.core.admission.boskos_pools import NOW, Ranch, grows, ranch, slot
from tests.core.admission.build import spec

MINUTE = 60 * SECOND


@pytest.fixture(params=[True, False], ids=["strict", "safe"])
def strict(request: pytest.FixtureRequest) -> bool:
    """Both ways."""
    return bool(request.param)


def some(strict: bool, *slots: Slot, **growths: object) -> Ranch:
    """A ranch with these slots."""
    return Ranch(ranch(*slots, **growths), strict=strict)  # type: ignore[arg-type] # passed on


def test_no_such_type(strict: bool) -> None:
    """A type that has no slots, or that there is not, does not exist."""
    for there in (some(strict), some(strict, slot("a", "other")), some(strict, slot("a", "t"))):
        with pytest.raises(Error) as refusal:
            there.acquire(pool="t2", request_id="id")
        assert refusal.value.code is Code.POOL_UNKNOWN


def test_none_to_be_had(strict: bool) -> None:
    """A slot in another state, or somebody's, cannot be had, and stays as it is."""
    there = some(strict, slot("a", "t", "dirty"), slot("b", "t", "free", "him"))
    before = there.slot("a"), there.slot("b")
    assert there.acquire() is None
    assert there.acquire("id") is None
    assert (there.slot("a"), there.slot("b")) == before
    there.check()


def test_one_to_be_had(strict: bool) -> None:
    """A slot becomes the caller's, in the state that it asked for, at this time."""
    there = some(strict, slot("a", "t"))
    assert there.acquire("id", owner="o", dest="d") == "a"
    taken = there.slot("a")
    assert (taken.owner, taken.state, taken.updated_at) == ("o", "d", NOW)
    there.check()


def test_the_longest_rested_first(strict: bool) -> None:
    """Four rounds over four slots give four slots."""
    there = some(strict, *(slot(name, "t") for name in "abcd"))
    names = []
    for n in range(4):
        there.pass_seconds(1)
        name = there.acquire(f"id-{n}")
        assert name is not None
        names.append(name)
        there.release(name)
    assert sorted(names) == ["a", "b", "c", "d"]
    there.check()


def test_priority(strict: bool) -> None:
    """Who waits with a request id is before others; once served it is behind them."""
    there = some(strict, slot("a", "t", "free", "him"))
    assert there.acquire("id-1") is None
    there.release("a", owner="him")
    assert there.acquire("") is None
    assert there.acquire("id-2") is None
    assert there.acquire("id-1") == "a"
    there.release("a")
    assert there.acquire("id-1") is None
    assert there.acquire("") is None
    there.pass_seconds(121)
    assert there.acquire("") == "a"
    there.check()


def test_on_demand(strict: bool) -> None:
    """A growing type makes one slot for each new request id, up to its most, in its first state."""
    there = some(strict, slot("z", "other"), t=grows(0, 2, "dirty"))

    def made() -> list[str]:
        return [one.state for one in there.facts.slots["t"].values()]

    for request_id, expected in (("", 0), ("id-1", 1), ("id-1", 1), ("id-2", 2), ("id-3", 2)):
        try:
            assert there.acquire(request_id) is None
        except Error as refusal:
            assert (refusal.code, expected) == (Code.POOL_UNKNOWN, 1 if request_id else 0)
        assert made() == ["dirty"] * expected
    there.check()


def test_on_demand_served_at_once() -> None:
    """Unless strict, a slot that was made for a request serves it in the same poll."""
    there = some(False, t=grows(0, 1))
    made = there.acquire("id-1")
    assert made is not None
    there.release(made)
    assert there.acquire("id-2") == made, "one is made only if none is free"
    strictly = some(True, t=grows(0, 1))
    with pytest.raises(Error):
        strictly.acquire("id-1")
    assert strictly.acquire("id-1") == "made-1"


def test_ranks() -> None:
    """Strict: rank k takes the k-th free slot, so a later one may be served, never with the share
    of an earlier one; without an id one is behind all.
    """
    there = some(True, *(slot(name, "t", "dirty", "him") for name in "abc"))
    for n in (1, 2, 3):
        assert there.acquire(f"id-{n}") is None
    there.release("a", owner="him")
    assert there.acquire("id-2") is None
    there.pass_seconds(1)
    there.release("b", owner="him")
    assert there.acquire("id-3") is None
    assert there.acquire("") is None
    assert there.acquire("id-2") == "b"
    assert there.acquire("id-3") is None
    assert there.acquire("id-1") == "a"
    there.check()


def test_an_id_is_no_key_when_strict() -> None:
    """Strict: two calls with one id get two slots; the second one is a new request."""
    there = some(True, slot("a", "t"), slot("b", "t"))
    assert {there.acquire("id"), there.acquire("id")} == {"a", "b"}
    there.check()


def two_waiting() -> Ranch:
    """Strict, on the minute: id-1 waits before id-2, for the only slot."""
    there = some(True, slot("a", "t", "busy", "him"))
    there.now = Instant(MINUTE * 1_000)
    assert there.acquire("id-1") is None
    assert there.acquire("id-2") is None
    return there


def test_a_dead_waiter_blocks_for_thirty_seconds() -> None:
    """Strict: an abandoned request has its rank until 30 s after its last poll."""
    there = two_waiting()
    there.release("a", owner="him")
    there.pass_seconds(30)
    assert there.acquire("id-2") is None
    there.pass_seconds(0.001)
    assert there.acquire("id-2") == "a"


def test_an_expired_request_keeps_its_place() -> None:
    """Strict: who polls again after 30 s, and before the collection, is where it was."""
    there = two_waiting()
    there.pass_seconds(31)
    assert there.acquire("id-2") is None
    assert there.acquire("id-1") is None
    there.release("a", owner="him")
    assert there.acquire("id-2") is None
    assert there.acquire("id-1") == "a"
    there.check()


def test_a_collected_request_is_a_new_one() -> None:
    """Strict: at every full minute expired requests are forgotten; then they are at the tail."""
    there = two_waiting()
    for _ in range(2):
        there.pass_seconds(25)
        assert there.acquire("id-2") is None
    there.pass_seconds(10.001)
    assert there.acquire("id-1") is None
    there.release("a", owner="him")
    assert there.acquire("id-1") is None
    assert there.acquire("id-2") == "a"
    there.check()


def test_owner_and_destination_are_no_part_of_a_request() -> None:
    """Strict: the place belongs to the id; slot and lease to whoever has asked last."""
    there = some(True, slot("a", "t", "busy", "him"))
    assert there.acquire("id-1", owner="one") is None
    assert there.acquire("id-2", owner="two") is None
    assert there.acquire("id-1", owner="three") is None
    there.release("a", owner="him")
    assert there.acquire("id-2", owner="two") is None
    assert there.acquire("id-1", owner="four", dest="d") == "a"
    assert (there.slot("a").owner, there.slot("a").state) == ("four", "d")
    there.check()


def test_states_are_queues_of_their_own(strict: bool) -> None:
    """Who waits for dirty slots is in nobody's way who wants free ones."""
    there = some(strict, slot("a", "t"), slot("b", "t", "dirty", "him"))
    assert there.acquire("janitor", state="dirty") is None
    assert there.acquire("user") == "a"
    there.release("b", "dirty", owner="him")
    assert there.acquire("other", state="dirty") is None
    assert there.acquire("janitor", state="dirty", dest="cleaning") == "b"
    there.check()


def test_a_lost_answer_is_given_again() -> None:
    """Safe: the same owner and id are told the same slot for a minute, another one after."""
    there = some(False, slot("a", "t"), slot("b", "t"))
    first = there.acquire("id")
    there.pass_seconds(59)
    assert there.acquire("id") == first
    assert there.acquire("id", owner="him") != first
    there.release({"a": "b", "b": "a"}[str(first)], owner="him")
    there.pass_seconds(2)
    assert there.acquire("id") not in (None, first)
    there.check()


def test_a_released_slot_is_not_given_again() -> None:
    """Safe: what was given back is gone; the same id asks anew, at the end of the line."""
    there = some(False, slot("a", "t"))
    assert there.acquire("id") == "a"
    there.release("a", "dirty")
    assert there.acquire("id") is None
    there.check()


def test_what_is_given_back_costs_no_place() -> None:
    """Safe: an id that waits for a second slot keeps its place when it gives back its first."""
    there = some(False, slot("a", "t"), slot("b", "t", "busy", "him"))
    assert there.acquire("id") == "a"
    there.pass_seconds(61)
    assert there.acquire("id") is None
    assert there.acquire("later", owner="her") is None
    there.release("a", "dirty")
    assert there.acquire("id") is None
    assert there.facts.pools["t"].waiting == 2
    there.release("b", owner="him")
    assert there.acquire("later", owner="her") is None
    assert there.acquire("id") == "b"
    there.check()


def test_a_lost_answer_is_given_again_whatever_was_given_back() -> None:
    """Safe: the second slot of an id is told again after its first one was given back."""
    there = some(False, slot("a", "t"), slot("b", "t"), slot("c", "t"))
    first = there.acquire("id")
    there.pass_seconds(61)
    second = there.acquire("id")
    there.release(str(first))
    assert there.acquire("id") == second
    there.check()


def test_who_has_nothing_set_aside_wakes_nobody() -> None:
    """A poller for dirty slots, of which there are none, changes nothing when it falls silent."""
    there = some(False, slot("a", "t", "busy", "him"))
    assert there.acquire("id") is None
    there.pass_seconds(11)
    there.release("a", owner="him")
    assert there.acquire("janitor", state="dirty") is None
    there.apply(Changes())
    assert there.facts.pools["t"].wake_at is None


def test_a_pool_may_go_in_the_batch_that_asks_for_it() -> None:
    """Who asks without waiting is told that there is no such type; the batch goes on."""
    there = some(False, slot("a", "t"))
    wish = Wish("t", "free", "busy", "me", "", LeaseId("lease"), "made")
    wanted = boskos.now_or_never(there.facts, there.moment, wish)
    there.facts.apply(pools.delete(there.facts, there.moment, "t")[0])
    there.facts.apply(admit(there.facts, there.moment, NOW, at_once=[wanted]))
    assert not there.facts.leases
    with pytest.raises(Error) as refusal:
        boskos.acquired(there.facts, wish, wish.fresh, strict=False)
    assert refusal.value.code is Code.POOL_UNKNOWN


def test_a_silent_client_is_passed_over() -> None:
    """Safe: after 10 s without a poll nobody waits for it; it keeps its place if it comes back."""
    there = some(False, slot("a", "t", "busy", "him"))
    assert there.acquire("id-1") is None
    there.pass_seconds(5)
    assert there.acquire("id-2") is None
    there.release("a", owner="him")
    assert there.acquire("id-2") is None
    there.pass_seconds(5.1)
    assert there.acquire("id-2") == "a"
    there.release("a")
    assert there.acquire("id-1") == "a"
    there.check()


def test_limits_of_the_pool_hold(strict: bool) -> None:
    """Paused, paced, resting or beyond a quota: there is nothing to be had, and it is no error."""
    for change in (
        {"paused": True},
        {"quota": 0},
        {"pacing": Pacing(interval=MINUTE)},
    ):
        there = some(strict, slot("a", "t"), slot("b", "t", "free", "me"))
        pool = there.facts.pools["t"]
        if "paused" in change:
            pool = structs.replace(pool, paused=True)
        else:
            spec = structs.replace(pool.spec, **change)
            pool = structs.replace(pool, spec=spec, paced_at=Instant(NOW + 1))
        there.facts.pools["t"] = pool
        there.facts.held["t", "boskos:me"] = 1
        assert there.acquire("id") is None
        assert there.acquire("") is None


def test_by_name(strict: bool) -> None:
    """Slots are taken by their names, whatever their type, each by a lease of its own."""
    there = some(strict, slot("a", "t"), slot("b", "u"), slot("c", "t"))
    taken = there.take("a", "b")
    assert taken is not None and set(taken) == {"a", "b"}
    there.release("a")
    assert (there.slot("a").owner, there.slot("b").owner) == ("", "me")
    there.check()


def test_by_name_and_one_missing() -> None:
    """Strict keeps what could be had and says nothing of it; safe takes all or nothing."""
    strictly = some(True, slot("a", "t"), slot("b", "t", "dirty"))
    assert strictly.take("a", "b") is None
    assert strictly.slot("a").owner == "me"
    strictly.check()
    safely = some(False, slot("a", "t"), slot("b", "t", "dirty"))
    with pytest.raises(Error) as refusal:
        safely.take("a", "b")
    assert refusal.value.message == "no available resource free, try again later."
    assert safely.slot("a").owner == ""
    safely.check()


def test_long_words(strict: bool) -> None:
    """Any request id will do; a name of an owner must be one that can be kept."""
    there = some(strict, slot("a", "t", "busy", "him"))
    long = "x" * 60_000
    assert there.acquire(long) is None
    assert there.acquire(long + "y") is None
    there.release("a", owner="him")
    assert there.acquire(long + "y") is None
    assert there.acquire(long) == "a"
    assert all(len(lease.key) <= KEY_LENGTH_MAX for lease in there.facts.leases.values())
    with pytest.raises(Error) as refusal:
        there.acquire("id", owner="o" * 256)
    assert refusal.value.code is Code.LIMIT_EXCEEDED


def test_a_type_that_comes_back_without_slots_in_the_same_batch() -> None:
    """Who asked for one of its resources before gets none, and hinders nobody."""
    there = some(False, slot("a", "t"))
    facts, moment = there.facts, there.moment
    wish = Wish("t", "free", "busy", "me", "", LeaseId("new"), "")
    asked = boskos.now_or_never(facts, moment, wish)
    facts.apply(pools.delete(facts, moment, "t")[0])
    facts.apply(pools.put(facts, moment, NOW, "t", spec(1))[0])
    assert not admit(facts, moment, NOW, at_once=[asked]).leases
    with pytest.raises(Error) as refusal:
        boskos.acquired(facts, wish, wish.fresh, strict=False)
    assert refusal.value.code is Code.POOL_UNKNOWN
