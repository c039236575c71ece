"""An operator's rules hold for clients of Boskos, whichever way they ask."""

from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.boskos import Wish
from moorage.core.admission.model import SECOND, Lease, Need, Pacing
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.ranch import NOW, Ranch, ranch, slot

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
    there.facts.pools["t"] = structs.replace(pool, waiting=pool.waiting + 1)
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
