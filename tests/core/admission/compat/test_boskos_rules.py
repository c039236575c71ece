"""The operator's rules of a pool apply to all requests of Boskos' clients."""

from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.admit import admit
from moorage.core.admission.compat import boskos
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.model import Lease, Need, Pacing
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.boskos_pools import NOW, Ranch, facts_with, slot

MINUTE = 60 * SECOND


@pytest.fixture(params=[True, False], ids=["strict", "safe"])
def ranch(request: pytest.FixtureRequest) -> Ranch:
    """Return a ranch with three free slots of one type, in strict and in safe mode."""
    return Ranch(facts_with(*(slot(name, "t") for name in "abc")), strict=bool(request.param))


def set_rules(ranch: Ranch, **rules: Any) -> None:
    """Change the rules of the pool."""
    pool = ranch.facts.pools["t"]
    ranch.facts.pools["t"] = structs.replace(pool, spec=structs.replace(pool.spec, **rules))


def take(ranch: Ranch, *names: str) -> list[str]:
    """Take slots by name; return all slots that the caller then owns."""
    try:
        ranch.take(*names)
    except Error as refusal:
        assert refusal.code is Code.NO_CAPACITY
    ranch.check()
    return [name for name in "abc" if ranch.slot(name).owner == "me"]


@pytest.mark.parametrize(
    "rules", [{"quota": 1}, {"pacing": Pacing(interval=MINUTE)}], ids=["quota", "pacing"]
)
def test_quota_and_pacing_bound_slots_by_name(ranch: Ranch, rules: dict[str, Any]) -> None:
    """Quota and pacing bound what is taken by name; strict keeps what was available."""
    set_rules(ranch, **rules)
    assert take(ranch, "a", "b") == (["a"] if ranch.strict else [])
    assert take(ranch, "c") == (["a"] if ranch.strict else ["c"])
    assert len(take(ranch, "b")) == 1


def test_no_slot_by_name_in_its_cooldown(ranch: Ranch) -> None:
    """A slot in its cooldown cannot be taken by name."""
    set_rules(ranch, cooldown=MINUTE)
    assert take(ranch, "a", "b", "c") == ["a", "b", "c"]
    for name in "abc":
        ranch.release(name)
    assert take(ranch, "a") == []
    ranch.pass_seconds(60)
    assert take(ranch, "a") == ["a"]


def add_ticket(ranch: Ranch, units: int, owner: str) -> None:
    """Add a ticket of a native client that waits for units of the pool."""
    pool = ranch.facts.pools["t"]
    awaited = {"free": pool.awaited.get("free", 0) + units}
    ranch.facts.pools["t"] = structs.replace(pool, waiting=pool.waiting + 1, awaited=awaited)
    lease = LeaseId(f"native-{pool.waiting}")
    ranch.facts.leases[lease] = Lease(
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


def test_a_ticket_that_is_passed_over_delays_no_other(ranch: Ranch) -> None:
    """Tickets that are passed over do not delay a request without an id."""
    set_rules(ranch, quota=2)
    ranch.facts.held["t", "greedy"] = 2
    add_ticket(ranch, 1, "greedy")
    add_ticket(ranch, 9, "huge")
    assert [ranch.acquire(), ranch.acquire(), ranch.acquire()] == ["a", "b", None]


AWKWARD = ("", "a", "b", "/", "a/b", "b/a", "a/b/a", "%", "%2F", "a%2Fb")


@pytest.mark.parametrize("strict", [True, False])
def test_each_type_and_state_has_its_own_line(strict: bool) -> None:
    """Each type and state has a separate line, whatever characters the names contain."""
    kinds = [kind for kind in AWKWARD if kind]
    ranch = Ranch(facts_with(*(slot(f"of {kind}", kind) for kind in kinds)), strict=strict)
    for kind in kinds:
        assert ranch.acquire(pool=kind) == f"of {kind}"
    asked = [(kind, state, one) for kind in kinds for state in AWKWARD for one in AWKWARD if one]
    keys = {
        AcquireRequest(kind, state, "leased", "me", one, LeaseId(""), "").key
        for kind, state, one in asked
    }
    assert len(keys) == len(asked)
    for kind, state, request_id in asked:
        assert ranch.acquire(request_id, pool=kind, state=state) is None
    ranch.check()
    for kind in kinds:
        assert ranch.facts.pools[kind].waiting == len(asked) / len(kinds)


@pytest.fixture
def safe() -> Ranch:
    """Return a ranch with three free slots of one type, in safe mode."""
    return Ranch(facts_with(*(slot(name, "t") for name in "abc")), strict=False)


def test_no_slot_by_name_that_is_set_aside(safe: Ranch) -> None:
    """Slots that are set aside for a larger ticket cannot be taken by name."""
    assert safe.acquire() == "a"
    add_ticket(safe, 3, "gang")
    for _ in range(3):
        assert take(safe, "b") == ["a"]
        assert take(safe, "b", "c") == ["a"]
        assert safe.acquire() is None
    safe.release("a")
    assert {one.owner for one in safe.facts.slots["t"].values()} == {"gang"}


def test_waiting_tickets_are_before_requests_by_name(safe: Ranch) -> None:
    """If two of three free slots are set aside, only one can be taken by name."""
    for request_id in ("one", "two"):
        set_rules(safe, quota=None)
        pool = safe.facts.pools["t"]
        safe.facts.pools["t"] = structs.replace(pool, paused=True)
        assert safe.acquire(request_id, owner=request_id) is None
    safe.facts.pools["t"] = structs.replace(safe.facts.pools["t"], paused=False)
    assert take(safe, "a", "b") == []
    assert take(safe, "a") == ["a"]
    assert take(safe, "b") == ["a"]
    assert safe.acquire("one", owner="one") == "b"
    assert safe.acquire("two", owner="two") == "c"


@pytest.mark.parametrize("strict", [True, False])
def test_only_slots_out_of_cooldown_by_name(strict: bool) -> None:
    """A slot in its cooldown cannot be taken by name, although others of its pool can."""
    ranch = Ranch(facts_with(*(slot(name, "t") for name in "abc")), strict=strict)
    set_rules(ranch, cooldown=MINUTE)
    assert take(ranch, "a") == ["a"]
    ranch.release("a")
    assert take(ranch, "a") == []
    assert take(ranch, "b") == ["b"]
    ranch.pass_seconds(60)
    assert take(ranch, "a") == ["a", "b"]


def test_a_misfit_does_not_delay_a_janitor(safe: Ranch) -> None:
    """A ticket that does not fit into the ledger sets nothing aside against at-once requests."""
    add_ticket(safe, 3, "large")
    ticket = LeaseId("native-0")
    large = structs.replace(safe.facts.leases[ticket], allocations="much")
    safe.facts.leases[ticket] = large
    changes = boskos.now_or_never(safe.facts, safe.moment, janitor_wish("first"))
    made = admit(
        safe.facts, safe.moment, safe.now, try_claim=lambda _: "no room", at_once=[changes]
    )
    assert made.leases[LeaseId("first")] is not None
    fits = boskos.now_or_never(safe.facts, safe.moment, janitor_wish("second"))
    made = admit(safe.facts, safe.moment, safe.now, try_claim=lambda _: None, at_once=[fits])
    assert list(made.leases) == [ticket]


def janitor_wish(fresh: str) -> AcquireRequest:
    """Return a request for a slot without a request id."""
    return AcquireRequest("t", "free", "cleaning", "janitor", "", LeaseId(fresh), "")


def test_a_refused_request_writes_nothing(safe: Ranch) -> None:
    """An at-once request that gets nothing writes nothing."""
    for name in "abc":
        assert safe.acquire() == name
    wanted = boskos.now_or_never(safe.facts, safe.moment, janitor_wish("late"))
    assert not admit(safe.facts, safe.moment, safe.now, at_once=[wanted])


def test_a_janitor_reads_no_line_of_another_state() -> None:
    """A request for a state that no ticket awaits is granted without reading the line."""
    ranch = Ranch(facts_with(slot("a", "t"), slot("d", "t", "dirty")), strict=False)
    pool = ranch.facts.pools["t"]
    ranch.facts.pools["t"] = structs.replace(pool, waiting=1_500, awaited={"free": 1_500, "x": 1})
    owned = structs.replace(ranch.facts.slots["t"]["a"], owner="x", lease=LeaseId("x"))
    ranch.facts.slots["t"]["a"] = owned
    assert ranch.acquire(state="dirty") == "d", "reading the line would have raised Restart"


def test_the_history_keeps_earlier_leases_of_a_request_id(safe: Ranch) -> None:
    """A request id that asks again gets a new lease; the ended one is kept by its id."""
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
