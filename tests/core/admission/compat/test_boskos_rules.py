"""An operator's rules hold for clients of Boskos, whichever way they ask."""

from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.admit import admit
from moorage.core.admission.compat import boskos
from moorage.core.admission.compat.boskos import Wish
from moorage.core.admission.model import Lease, Need, Pacing
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.boskos_pools import NOW, Ranch, ranch, slot

MINUTE = 60 * SECOND


@pytest.fixture(params=[True, False], ids=["strict", "safe"])
def there(request: pytest.FixtureRequest) -> Ranch:
    """Three free slots of one type, in both ways."""
    return Ranch(ranch(*(slot(name, "t") for name in "abc")), strict=bool(request.param))


def ruled(there: Ranch, **rules: Any) -> None:
    """Let the pool have these rules."""
    pool = there.facts.pools["t"]
    there.facts.pools["t"] = structs.replace(pool, spec=structs.replace(pool.spec, **rules))


def taken(there: Ranch, *names: str) -> list[str]:
    """Take slots by name; return those that are the caller's then."""
    try:
        there.take(*names)
    except Error as refusal:
        assert refusal.code is Code.NO_CAPACITY
    there.check()
    return [name for name in "abc" if there.slot(name).owner == "me"]


@pytest.mark.parametrize(
    "rules", [{"quota": 1}, {"pacing": Pacing(interval=MINUTE)}], ids=["quota", "pacing"]
)
def test_no_more_by_name_than_one_may_have(there: Ranch, rules: dict[str, Any]) -> None:
    """Beyond a quota or the pacing there is nothing; strict keeps what could be had."""
    ruled(there, **rules)
    assert taken(there, "a", "b") == (["a"] if there.strict else [])
    assert taken(there, "c") == (["a"] if there.strict else ["c"])
    assert len(taken(there, "b")) == 1


def test_what_rests_is_not_to_be_had_by_name(there: Ranch) -> None:
    """A slot that was given back rests, for those who know its name, too."""
    ruled(there, cooldown=MINUTE)
    assert taken(there, "a", "b", "c") == ["a", "b", "c"]
    for name in "abc":
        there.release(name)
    assert taken(there, "a") == []
    there.pass_seconds(60)
    assert taken(there, "a") == ["a"]


def waiting(there: Ranch, units: int, owner: str) -> None:
    """Let a native client wait for units of the pool."""
    pool = there.facts.pools["t"]
    awaited = {"free": pool.awaited.get("free", 0) + units}
    there.facts.pools["t"] = structs.replace(pool, waiting=pool.waiting + 1, awaited=awaited)
    lease = LeaseId(f"native-{pool.waiting}")
    there.facts.leases[lease] = Lease(
        id=lease,
        owner=owner,
        key=lease,
        digest="",
        needs=(Need("t", units),),
        state="waiting",
        priority=0,
        arrival=pool.waiting - 100,
        ttl=MINUTE,
        hold=None,
        patience=MINUTE,
        labels={},
        forced=False,
        pull=False,
        keep=False,
        asked_at=NOW,
        heard_until=Instant(NOW + MINUTE),
    )


def test_who_may_have_nothing_keeps_nobody_waiting(there: Ranch) -> None:
    """Tickets that are passed over do not stand before a poll without a request id."""
    ruled(there, quota=2)
    there.facts.held["t", "greedy"] = 2
    waiting(there, 1, "greedy")
    waiting(there, 9, "huge")
    assert [there.acquire(), there.acquire(), there.acquire()] == ["a", "b", None]


AWKWARD = ("", "a", "b", "/", "a/b", "b/a", "a/b/a", "%", "%2F", "a%2Fb")


@pytest.mark.parametrize("strict", [True, False])
def test_requests_of_two_types_are_never_one(strict: bool) -> None:
    """Whatever the names of types, states and requests contain: each stands in its own line."""
    kinds = [kind for kind in AWKWARD if kind]
    there = Ranch(ranch(*(slot(f"of {kind}", kind) for kind in kinds)), strict=strict)
    for kind in kinds:
        assert there.acquire(pool=kind) == f"of {kind}"
    asked = [(kind, state, one) for kind in kinds for state in AWKWARD for one in AWKWARD if one]
    keys = {
        Wish(kind, state, "leased", "me", one, LeaseId(""), "").key for kind, state, one in asked
    }
    assert len(keys) == len(asked)
    for kind, state, request_id in asked:
        assert there.acquire(request_id, pool=kind, state=state) is None
    there.check()
    for kind in kinds:
        assert there.facts.pools[kind].waiting == len(asked) / len(kinds)


@pytest.fixture
def safe() -> Ranch:
    """Three free slots of one type, not strict."""
    return Ranch(ranch(*(slot(name, "t") for name in "abc")), strict=False)


def test_nobody_takes_by_name_what_is_set_aside(safe: Ranch) -> None:
    """What is set aside for a ticket that needs more is not to be had by name, however often."""
    assert safe.acquire() == "a"
    waiting(safe, 3, "gang")
    for _ in range(3):
        assert taken(safe, "b") == ["a"]
        assert taken(safe, "b", "c") == ["a"]
        assert safe.acquire() is None
    safe.release("a")
    assert {one.owner for one in safe.facts.slots["t"].values()} == {"gang"}


def test_by_name_is_after_whoever_waits(safe: Ranch) -> None:
    """Of three free slots two are spoken for: whoever names one gets the third, and no more."""
    for request_id in ("one", "two"):
        ruled(safe, quota=None)
        pool = safe.facts.pools["t"]
        safe.facts.pools["t"] = structs.replace(pool, paused=True)
        assert safe.acquire(request_id, owner=request_id) is None
    safe.facts.pools["t"] = structs.replace(safe.facts.pools["t"], paused=False)
    assert taken(safe, "a", "b") == []
    assert taken(safe, "a") == ["a"]
    assert taken(safe, "b") == ["a"]
    assert safe.acquire("one", owner="one") == "b"
    assert safe.acquire("two", owner="two") == "c"


@pytest.mark.parametrize("strict", [True, False])
def test_the_slot_that_rests_is_not_to_be_had_by_name(strict: bool) -> None:
    """Though others of its pool do not rest."""
    there = Ranch(ranch(*(slot(name, "t") for name in "abc")), strict=strict)
    ruled(there, cooldown=MINUTE)
    assert taken(there, "a") == ["a"]
    there.release("a")
    assert taken(there, "a") == []
    assert taken(there, "b") == ["b"]
    there.pass_seconds(60)
    assert taken(there, "a") == ["a", "b"]


def test_a_janitor_is_not_kept_waiting_by_who_waits_for_capacity(safe: Ranch) -> None:
    """Who does not fit into the ledger sets nothing aside, whoever asks how."""
    waiting(safe, 3, "large")
    ticket = LeaseId("native-0")
    large = structs.replace(safe.facts.leases[ticket], allocations="much")
    safe.facts.leases[ticket] = large
    changes = boskos.now_or_never(safe.facts, safe.moment, janitor("first"))
    made = admit(
        safe.facts, safe.moment, safe.now, try_claim=lambda _: "no room", at_once=[changes]
    )
    assert made.leases[LeaseId("first")] is not None
    fits = boskos.now_or_never(safe.facts, safe.moment, janitor("second"))
    made = admit(safe.facts, safe.moment, safe.now, try_claim=lambda _: None, at_once=[fits])
    assert list(made.leases) == [ticket]


def janitor(fresh: str) -> Wish:
    """Ask for a slot without a request id."""
    return Wish("t", "free", "cleaning", "janitor", "", LeaseId(fresh), "")


def test_who_asks_in_vain_leaves_no_trace(safe: Ranch) -> None:
    """Nothing is written for a poll that comes to nothing: no ticket, no arrival, no sum."""
    for name in "abc":
        assert safe.acquire() == name
    wanted = boskos.now_or_never(safe.facts, safe.moment, janitor("late"))
    assert not admit(safe.facts, safe.moment, safe.now, at_once=[wanted])


def test_a_janitor_reads_no_line_of_another_state() -> None:
    """Whoever wants what nobody in the line wants gets it without a look at the line."""
    there = Ranch(ranch(slot("a", "t"), slot("d", "t", "dirty")), strict=False)
    pool = there.facts.pools["t"]
    there.facts.pools["t"] = structs.replace(pool, waiting=1_500, awaited={"free": 1_500, "x": 1})
    taken_ = structs.replace(there.facts.slots["t"]["a"], owner="x", lease=LeaseId("x"))
    there.facts.slots["t"]["a"] = taken_
    assert there.acquire(state="dirty") == "d", "Restart would have been raised"


def test_the_history_keeps_what_a_request_id_had_before(safe: Ranch) -> None:
    """A request id that asks again gets a lease of its own; the ended one stays, by its id."""
    assert safe.acquire("id") == "a"
    first = safe.slot("a").lease
    assert first is not None
    safe.release("a")
    safe.pass_seconds(61)
    assert safe.acquire("id") == "b"
    second = safe.slot("b").lease
    assert second is not None
    ended, live = safe.facts.leases[first], safe.facts.leases[second]
    assert (ended.state, ended.cause, live.state) == ("ended", "released", "granted")
    assert ended.key != live.key
    assert safe.acquire("id") == "b", "a lost answer is still given again"
    safe.check()
