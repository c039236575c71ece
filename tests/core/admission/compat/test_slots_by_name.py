"""Release, update and reset of slots by name and owner."""

import pytest
from msgspec import structs

from moorage.core.admission.admit import admit
from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.compat.boskos import AcquireRequest, acquire_safe
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease, Need
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment
from tests.core.admission.boskos_pools import NOW, START, facts_with, grows, lease_on, slot

MOMENT = Moment(NOW, NOW)


def release(
    facts: Facts, name: str, dest: str = "d", owner: str = "o", *, native: bool = False
) -> None:
    """Release a slot."""
    facts.apply(slots_by_name.release(facts, MOMENT, NOW, name, dest, owner, native=native))


def refusal_of(facts: Facts, *words: str) -> tuple[Code, str]:
    """Return the code and message of a refused release."""
    with pytest.raises(Error) as refusal:
        release(facts, *words)
    return refusal.value.code, refusal.value.message


def test_release_refused() -> None:
    """A release with an unknown name or another owner is refused, even of an unowned slot."""
    facts = facts_with(slot("a", "t", "s", "him"), slot("b", "t"))
    unknown = "no available resource x, try again later."
    assert refusal_of(facts, "x") == (Code.SLOT_NOT_FOUND, unknown)
    other = "owner mismatch request by o, currently owned by him"
    assert refusal_of(facts, "a") == (Code.HOLDER_MISMATCH, other)
    nobody = "owner mismatch request by o, currently owned by "
    assert refusal_of(facts, "b") == (Code.HOLDER_MISMATCH, nobody)


def test_release() -> None:
    """A released slot has no owner and the given state; its lease has ended."""
    facts = facts_with(slot("a", "t", "s", "o"))
    facts.slots["t"]["a"] = structs.replace(facts.slots["t"]["a"], user_data={"k": "v"})
    release(facts, "a")
    now = facts.slots["t"]["a"]
    assert (now.owner, now.lease, now.state, now.updated_at) == ("", None, "d", NOW)
    assert (now.user_data, now.expires_at) == ({"k": "v"}, None)
    lease = facts.leases[LeaseId("lease-of-a")]
    assert (lease.state, lease.cause) == ("ended", "released")
    assert facts.pools["t"].occupied == 0


@pytest.mark.parametrize(
    ("growth", "expires"),
    [
        (None, None),
        (grows(1, 2), None),
        (grows(1, 2, lifespan=1_000_000), Instant(NOW + 1_000_000)),
    ],
)
def test_lifespan(growth: object, expires: Instant | None) -> None:
    """A slot of a growing pool expires a lifespan after its release."""
    growths = {} if growth is None else {"t": growth}
    facts = facts_with(slot("a", "t", "s", "o"), **growths)  # type: ignore[arg-type] # passed on
    release(facts, "a")
    assert facts.slots["t"]["a"].expires_at == expires


def test_update() -> None:
    """An update checks the owner, then the state; it sets the time and merges user data."""
    facts = facts_with(slot("a", "t", "s", "o"))

    def update(name: str, owner: str, state: str, **data: str) -> None:
        facts.apply(slots_by_name.update(facts, MOMENT, NOW, name, owner, state, data))

    for words, code in (
        (("x", "o", "s"), Code.SLOT_NOT_FOUND),
        (("a", "him", "other"), Code.HOLDER_MISMATCH),
        (("a", "o", "other"), Code.SLOT_STATE),
    ):
        with pytest.raises(Error) as refusal:
            update(*words)
        assert refusal.value.code is code
    assert refusal.value.message == "state mismatch - expected s, current other"
    assert facts.slots["t"]["a"].updated_at == START
    for data, expected in (
        ({"a": "1"}, {"a": "1"}),
        ({"b": "2"}, {"a": "1", "b": "2"}),
        ({"b": "3"}, {"a": "1", "b": "3"}),
        ({"a": "", "c": ""}, {"b": "3"}),
        ({}, {"b": "3"}),
    ):
        update("a", "o", "s", **data)
        assert facts.slots["t"]["a"].user_data == expected
    assert facts.slots["t"]["a"].updated_at == NOW


def test_reset() -> None:
    """A reset takes owned slots of the type and state that were not updated for this long."""
    facts = facts_with(
        slot("a", "t", "s", "o"),
        slot("b", "t", "other", "o"),
        slot("c", "t", "s"),
        slot("d", "u", "s", "o"),
    )

    def reset(expire: int) -> dict[str, str]:
        changes, names = slots_by_name.reset(facts, MOMENT, NOW, "t", "s", expire, "d")
        facts.apply(changes)
        return names

    age = (NOW - START) * 1_000
    assert reset(age + 1) == {}
    assert reset(age) == {"a": "o"}
    assert reset(-1) == {}
    assert [one.state for one in facts.slots["t"].values()] == ["d", "other", "s"]
    assert facts.leases[LeaseId("lease-of-a")].cause == "revoked"
    changes, names = slots_by_name.reset(facts, MOMENT, NOW, "none", "s", 0, "d")
    assert (bool(changes), names) == (False, {})


def test_reset_leaves_leases_that_are_renewed() -> None:
    """Renewals protect a native lease from a reset; leases of the proxy are never reset.

    Native leases are only reset if that is permitted.
    """
    facts = facts_with(slot("boskos", "t", "s", "o"), slot("native", "t", "s", "p"))
    facts.slots["t"]["proxied"] = slot("proxied", "t", "s", "q")
    ttl = 60 * SECOND
    native = structs.replace(
        lease_on(facts.slots["t"]["native"]), owner="p", ttl=ttl, heard_until=Instant(NOW + ttl)
    )
    native_lease = native.id
    proxied = structs.replace(lease_on(facts.slots["t"]["proxied"]), owner="lease-proxy")
    facts.leases |= {native.id: native, proxied.id: proxied}

    def stale(silence: int, native: bool = True) -> set[str]:
        moment = Moment(Instant(NOW + silence), Instant(NOW + silence))
        wall = Instant(NOW + silence)
        expire = 30 * SECOND * 1_000
        changes, owners = slots_by_name.reset(
            facts, moment, wall, "t", "s", expire, "d", native=native
        )
        assert (native_lease in changes.leases) == ("native" in owners)
        return set(owners)

    assert stale(0) == stale(30 * SECOND - 1) == {"boskos"}
    assert stale(30 * SECOND) == {"boskos", "native"}
    assert stale(3_600 * SECOND, native=False) == {"boskos"}


def test_reset_counts_whole_seconds() -> None:
    """An update counts from the beginning of its second."""
    facts = facts_with(slot("a", "t", "s", "o"))
    late = structs.replace(facts.slots["t"]["a"], updated_at=Instant(NOW + 999_999))
    facts.slots["t"]["a"] = late
    _, names = slots_by_name.reset(
        facts, MOMENT, Instant(NOW + 1_000_000), "t", "s", 1_000_000_000, "d"
    )
    assert names == {"a": "o"}


def test_counts() -> None:
    """Slots are counted by state and by owner; the owner of an unowned slot is empty."""
    facts = facts_with(slot("a", "t", "s", "o"), slot("b", "t", "s"), slot("c", "t"))
    found = slots_by_name.counts(facts.slots["t"].values())
    assert (found.states, found.owners) == ({"s": 2, "free": 1}, {"o": 1, "": 2})


def gang() -> tuple[Facts, Lease]:
    """Return facts with a native lease of three slots in two pools, and the lease."""
    slots = [slot("a", "t", "leased", "o"), slot("b", "t", "leased", "o"), slot("c", "u", "s", "o")]
    facts = facts_with(*slots)
    lease = structs.replace(
        lease_on(slots[0]),
        id=LeaseId("gang"),
        owner="o",
        needs=(Need("t", 2), Need("u", 1, "free", "s")),
        slots={"t": ("a", "b"), "u": ("c",)},
    )
    facts.leases = {lease.id: lease}
    for one in slots:
        facts.slots[one.pool][one.name] = structs.replace(one, lease=lease.id)
    return facts, lease


def test_a_lease_keeps_its_other_slots() -> None:
    """A release of one of several slots keeps the others; that of the last ends the lease."""
    facts, lease = gang()
    release(facts, "a", native=True)
    now = facts.leases[lease.id]
    assert (now.state, now.slots) == ("granted", {"t": ("b",), "u": ("c",)})
    assert [need.units for need in now.needs] == [1, 1]
    assert (facts.pools["t"].occupied, facts.pools["u"].occupied) == (1, 1)
    release(facts, "c", native=True)
    assert facts.leases[lease.id].slots == {"t": ("b",)}
    assert (facts.pools["t"].occupied, facts.pools["u"].occupied) == (1, 0)
    assert facts.leases[lease.id].state == "granted"
    release(facts, "b", native=True)
    assert facts.leases[lease.id].state == "ended"
    assert facts.pools["t"].occupied == 0
    assert {one.owner for one in facts.slots_of(["t", "u"])} == {""}


def test_native_leases_are_out_of_reach() -> None:
    """A slot's name and owner do not suffice to end or update a native lease."""
    facts, lease = gang()
    code, message = refusal_of(facts, "a")
    assert code is Code.HOLDER_MISMATCH
    assert message == "owner mismatch request by o, currently owned by o by a native lease"
    with pytest.raises(Error) as refusal:
        slots_by_name.update(facts, MOMENT, NOW, "a", "o", "leased", {"k": "v"})
    assert refusal.value.code is Code.HOLDER_MISMATCH
    changes, owners = slots_by_name.reset(facts, MOMENT, NOW, "t", "leased", -1, "d")
    assert (bool(changes), owners) == (False, {})
    assert facts.leases[lease.id] == lease


def test_leases_of_the_proxy_are_within_reach() -> None:
    """Leases of the proxy can be released by name, since the proxy authenticates as little."""
    facts = facts_with(slot("a", "t", "leased", "lease-proxy"))
    held = lease_on(facts.slots["t"]["a"])
    facts.leases[held.id] = structs.replace(held, owner="lease-proxy")
    release(facts, "a", owner="lease-proxy")
    assert facts.leases[held.id].state == "ended"


def test_a_released_slot_is_granted_again() -> None:
    """A waiting client gets a slot that was released as free."""
    facts = facts_with(slot("a", "t", "s", "o"))
    wish = AcquireRequest("t", "free", "leased", "me", "id", LeaseId("new"), "")
    changes, ticket = acquire_safe(facts, MOMENT, NOW, wish)
    facts.apply(changes)
    release(facts, "a", "free")
    assert ticket is not None
    facts.apply(admit(facts, MOMENT, NOW, polled=frozenset({ticket})))
    assert facts.slots["t"]["a"].owner == "me"


def test_user_data_are_bounded() -> None:
    """The size of a slot's user data is bounded over all updates."""
    facts = facts_with(slot("a", "t", "s", "o"))
    half = "x" * 600_000
    facts.apply(slots_by_name.update(facts, MOMENT, NOW, "a", "o", "s", {"one": half}))
    with pytest.raises(Error) as refusal:
        slots_by_name.update(facts, MOMENT, NOW, "a", "o", "s", {"two": half})
    assert refusal.value.code is Code.LIMIT_EXCEEDED
    facts.apply(slots_by_name.update(facts, MOMENT, NOW, "a", "o", "s", {"one": "", "two": half}))
    assert list(facts.slots["t"]["a"].user_data) == ["two"]
