"""`sums_differ` finds every stored sum and slot that contradicts the leases, and describes it."""

from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.model import Need
from moorage.core.ids import LeaseId
from tests.core.admission.build import World
from tests.core.admission.sums import sums_differ


@pytest.fixture
def world() -> World:
    """Return a world in which one lease occupies units and slots and one ticket waits for them."""
    made = World()
    made.pool("p", 2, quota=2)
    made.slots("s", "a", "b")
    made.ask("held", {"p": 1, "s": 1})
    made.ask("waits", {"p": 2, "s": 1})
    return made


def test_right_sums_have_no_differences(world: World) -> None:
    """Correct sums are not reported, with waiting, granted and ended leases."""
    assert sums_differ(world.facts) == []
    world.release("held")
    assert sums_differ(world.facts) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"occupied": 2}, "pool p: occupied is 2, and should be 1"),
        ({"waiting": 0}, "pool p: waiting is 0, and should be 1"),
        ({"gangs": 2}, "pool p: gangs is 2, and should be 1"),
        ({"awaited": {"free": 1}}, "pool p: awaited is {'free': 1}, and should be {}"),
    ],
)
def test_a_wrong_sum_is_reported(world: World, changed: dict[str, Any], message: str) -> None:
    """A wrong sum of a pool is reported with the stored and, usually, the correct value."""
    world.facts.pools["p"] = structs.replace(world.facts.pools["p"], **changed)
    assert sums_differ(world.facts) == [message]


def test_wrong_quotas_and_slots_are_reported(world: World) -> None:
    """Wrong counts of a quota, slots without their lease, and leases without slot or pool."""
    facts = world.facts
    facts.held["p", "me"] = 5
    slot = facts.slots["s"].pop("a")
    facts.slots["s"]["b"] = structs.replace(slot, name="b", lease=LeaseId("x"))
    lease = facts.leases[LeaseId("waits")]
    facts.leases[lease.id] = structs.replace(lease, needs=(*lease.needs, Need("gone", 1)))
    assert sums_differ(facts) == [
        "pool p: me holds 5, and should hold 1",
        "lease waits: pool gone does not exist",
        "slot s/b: held by x, and should be by None",
        "lease held: holds slot s/a, which does not exist",
    ]


def test_a_lease_with_too_few_slots_is_reported(world: World) -> None:
    """A lease must have as many slots as units."""
    facts = world.facts
    lease = facts.leases[LeaseId("held")]
    facts.leases[lease.id] = structs.replace(lease, slots={})
    assert sums_differ(facts) == [
        "slot s/a: held by held, and should be by None",
        "lease held: has 0 slots of s, and should have 1",
    ]
