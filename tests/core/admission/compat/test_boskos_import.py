"""Slots take over what Boskos says of its resources: naively compared, and each refusal."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.compat.boskos_import import Outcome, Resource, take_over
from moorage.core.admission.facts import Facts
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from tests.core.admission.boskos_pools import NOW, Ranch, facts_with, grows, slot

HOUR = 3_600 * SECOND
EARLIER = Instant(NOW - 60 * SECOND)


def resource(name: str, state: str = "free", owner: str = "", **more: Any) -> Resource:
    """Return a resource that was updated a minute ago."""
    given: dict[str, Any] = {"user_data": {}, "updated_at": EARLIER, "expires_at": None}
    return Resource(name, state, owner, **{**given, **more})


def imported(ranch: Ranch, pool: str, *resources: Resource) -> Mapping[str, Outcome]:
    """Import into a pool, as one request of a batch; return the outcomes."""
    ranch.calls += 1
    fresh = [LeaseId(f"imported-{ranch.calls}-{one.name}") for one in resources]
    changes, outcomes = take_over(ranch.facts, ranch.moment, ranch.now, pool, resources, fresh)
    ranch.facts.apply(changes)
    ranch.check()
    assert set(outcomes.reasons) == {
        name for name, found in outcomes.found.items() if found in (Outcome.REFUSED, Outcome.KEPT)
    }
    return outcomes.found


def ranch_with(facts: Facts) -> Ranch:
    """Return a ranch."""
    return Ranch(facts, strict=False)


states = st.sampled_from(["free", "dirty", "busy", "leased", "tombstone", "anything"])
owners = st.sampled_from(["", "", "janitor", "job-1"])
data = st.dictionaries(st.sampled_from("ab"), st.text(max_size=3))
times = st.integers(NOW - HOUR, NOW + HOUR).map(Instant)


@given(st.lists(st.tuples(states, owners, data, times), max_size=6), st.booleans())
def test_slots_are_as_in_boskos(
    found: list[tuple[str, str, dict[str, str], Instant]], grow: bool
) -> None:
    """Everything but a time in the future is taken over; a second time nothing changes."""
    names = [f"name-{number}" for number in range(len(found))]
    slots = () if grow else (slot(name, "t") for name in [*names, "spare"])
    ranch = ranch_with(facts_with(*slots, **({"t": grows(0, 9)} if grow else {})))
    ranch.facts.slots.setdefault("t", {})
    wanted = [
        Resource(name, state, owner, user_data, at, None)
        for name, (state, owner, user_data, at) in zip(names, found, strict=True)
    ]
    if not grow or wanted:
        first = imported(ranch, "t", *wanted)
        assert {first[name] for name in names} <= {Outcome.IMPORTED, Outcome.UNCHANGED}
    for one in wanted:
        there = ranch.slot(one.name)
        assert (there.state, there.owner, there.user_data) == (one.state, one.owner, one.user_data)
        assert there.updated_at == min(one.updated_at, NOW)
        assert there.dynamic == grow
    again = imported(ranch, "t", *wanted)
    assert {again[name] for name in names} <= {Outcome.UNCHANGED}


def test_a_holder_is_as_silent_as_in_boskos() -> None:
    """The reaper takes a resource when it would have done so there."""
    ranch = ranch_with(facts_with(slot("a", "t"), slot("b", "t")))
    imported(
        ranch, "t", resource("a", "busy", "job"), resource("b", "busy", "other", updated_at=NOW)
    )
    minute = 60 * 1_000_000_000
    changes, owners = slots_by_name.reset(
        ranch.facts, ranch.moment, ranch.now, "t", "busy", minute, "dirty"
    )
    ranch.apply(changes)
    assert owners == {"a": "job"}
    ranch.check()


def test_a_holder_can_release_and_update() -> None:
    """Under the same name of the owner."""
    ranch = ranch_with(facts_with(slot("a", "t")))
    imported(ranch, "t", resource("a", "busy", "job", user_data={"k": "v"}))
    with pytest.raises(Error):
        ranch.release("a", owner="another")
    ranch.release("a", owner="job")
    assert ranch.slot("a").user_data == {"k": "v"}
    ranch.check()


def test_a_growing_pool_has_the_resources_of_boskos() -> None:
    """Names are kept; what the pool has made for nobody goes; what was used stays."""
    unused, used = slot("unused", "t", "dirty"), slot("used", "t", "free")
    held = slot("held", "t", "busy", "somebody")
    facts = facts_with(unused, used, held, t=grows(1, 5, "dirty"))
    for name, one in facts.slots["t"].items():
        facts.slots["t"][name] = structs.replace(one, dynamic=True)
    ranch = ranch_with(facts)
    expires = Instant(NOW + HOUR)
    outcomes = imported(ranch, "t", resource("uuid-1", "free", expires_at=expires))
    assert outcomes == {
        "uuid-1": Outcome.IMPORTED,
        "unused": Outcome.REMOVED,
        "used": Outcome.KEPT,
        "held": Outcome.KEPT,
    }
    assert ranch.slot("uuid-1").expires_at == expires
    assert set(facts.slots["t"]) == {"uuid-1", "used", "held"}


REFUSED = {
    "another's": (resource("held", "busy", "other"), Code.HOLDER_MISMATCH),
    "free there": (resource("held", "busy"), Code.HOLDER_MISMATCH),
    "of another type": (resource("elsewhere"), Code.SLOT_EXISTS),
    "not configured": (resource("new"), Code.SLOT_NOT_FOUND),
    "a name": (resource("A/b"), Code.INVALID),
    "no state": (resource("a", ""), Code.INVALID),
    "control characters": (resource("a", "free\n"), Code.INVALID),
    "a long owner": (resource("a", "busy", "x" * 256), Code.LIMIT_EXCEEDED),
    "long user data": (resource("a", user_data={"k": "x" * 2**20}), Code.LIMIT_EXCEEDED),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_rest(case: str) -> None:
    """The others are imported, and the slot that was meant is as it was."""
    refused, _ = REFUSED[case]
    slots = slot("a", "t"), slot("b", "t"), slot("held", "t", "busy", "me"), slot("elsewhere", "u")
    ranch = ranch_with(facts_with(*slots))
    before = dict(ranch.facts.slots["t"])
    outcomes = imported(ranch, "t", refused, resource("b", "dirty"))
    assert outcomes[refused.name] is Outcome.REFUSED
    assert ranch.slot("b").state == "dirty"
    assert {n: one for n, one in ranch.facts.slots["t"].items() if n != "b"} == {
        n: one for n, one in before.items() if n != "b"
    }


def test_requests_that_are_refused() -> None:
    """A pool that is not there, one with a limit, and a resource that is named twice."""
    ranch = ranch_with(facts_with(slot("a", "t")))
    with pytest.raises(Error) as unknown:
        imported(ranch, "nowhere", resource("a"))
    assert unknown.value.code is Code.POOL_NOT_FOUND
    with pytest.raises(Error) as twice:
        imported(ranch, "t", resource("a"), resource("a", "dirty"))
    assert twice.value.code is Code.INVALID
