"""Slots that operators make, label, drain and remove."""

from typing import Any

import pytest

from moorage.core.admission import pools
from moorage.core.admission import slot_changes as slots
from moorage.core.admission.model import Need
from moorage.core.admission.slot_config import ResourceType, SlotConfig, sync
from moorage.core.errors import Code
from moorage.core.limits import SLOTS_MAX
from moorage.core.wishes import wanted_of
from tests.core.admission.build import Refused, World, make_ask, spec


def world_with(*names: str, **labels: str) -> World:
    """Return a pool `p` with native slots, all with these labels."""
    world = World()
    described = spec(None, native_slots=True)
    world.do(pools.put(world.facts, world.moment, world.wall, "p", described))
    world.do((slots.add(world.facts, world.wall, "p", names, labels), None))
    return world


def drain(world: World, name: str, **how: Any) -> None:
    """Drain a slot of `p`; it goes once it is free, unless `keep`."""
    made = slots.drain(world.facts, world.wall, "p", name, **({"keep": False, "reason": ""} | how))
    world.do((made[0], None))


def test_new_slots_are_granted_at_once() -> None:
    """Slots that are added to a pool with a line go to its first tickets."""
    world = world_with("a")
    world.ask("one")
    world.ask("two")
    world.do((slots.add(world.facts, world.wall, "p", ["b"], {}), None))
    assert world.lease("two").slots == {"p": ("b",)}


def test_adding_again_changes_nothing() -> None:
    """A repeated request finds its slots made, even if one is held; other labels are refused."""
    world = world_with("a", zone="x")
    world.ask("one")
    assert not slots.add(world.facts, world.wall, "p", ["a"], {"zone": "x"})
    with Refused(Code.SLOT_EXISTS):
        slots.add(world.facts, world.wall, "p", ["a"], {"zone": "y"})


def test_names_are_unique_over_all_pools() -> None:
    """A slot's name stands in one pool only, since Boskos' clients release by name alone."""
    world = world_with("a")
    world.slots("boskos", "b")
    with Refused(Code.SLOT_EXISTS):
        slots.add(world.facts, world.wall, "p", ["b"], {})


@pytest.mark.parametrize("name", ["", "a/b", "..", "A", "a b", "a:drain", "a" * 256])
def test_a_name_is_one_segment_of_a_path(name: str) -> None:
    """`POOL/SLOT` names one slot, and an address one action: other names are refused."""
    with Refused(Code.INVALID) as refused:
        world_with("a", name)
    assert "no slash" in refused.message
    assert world_with("a.b_c-1").facts.slots["p"].keys() == {"a.b_c-1"}


def test_a_pool_has_a_bounded_number_of_slots() -> None:
    """As many slots as may be are made, and one more is refused: each decision reads them all."""
    world = world_with(*(f"s{n}" for n in range(SLOTS_MAX)))
    with Refused(Code.LIMIT_EXCEEDED):
        slots.add(world.facts, world.wall, "p", ["one-more"], {})


def test_a_free_slot_goes_at_once() -> None:
    """A free slot that is drained is gone, and its pool has a unit less."""
    world = world_with("a", "b")
    drain(world, "a")
    assert list(world.facts.slots["p"]) == ["b"]


def test_a_held_slot_goes_when_it_is_released() -> None:
    """A drained slot stays with its holder, is granted to no ticket, and goes once it is free."""
    world = world_with("a")
    world.ask("one")
    world.ask("two")
    drain(world, "a", reason="disk")
    assert world.lease("one").state == "granted"
    world.release("one")
    assert world.lease("two").state == "waiting"
    assert world.facts.slots["p"] == {}
    assert world.facts.pools["p"].occupied == 0


def test_a_kept_slot_stays_drained_until_it_is_resumed() -> None:
    """With `keep` a slot survives its release, is granted to nobody, and then resumed."""
    world = world_with("a")
    world.ask("one")
    drain(world, "a", keep=True)
    world.ask("two")
    world.release("one")
    assert world.lease("two").state == "waiting"
    world.do((slots.resume(world.facts, "p", "a")[0], None))
    assert world.lease("two").slots == {"p": ("a",)}


def test_requests_wait_for_a_kept_slot() -> None:
    """During maintenance of all slots requests wait, also for labels; for lost ones they do not."""
    world = world_with("a", zone="x")
    drain(world, "a", keep=True)
    world.ask("any")
    world.ask("labelled", (Need("p", 1, wanted=wanted_of({"zone": "x"})),))
    assert world.lease("any").state == world.lease("labelled").state == "waiting"
    with Refused(Code.UNITS_ABOVE_LIMIT):
        world.ask("two", {"p": 2})
    world.do((slots.resume(world.facts, "p", "a")[0], None))
    assert world.lease("any").state == "granted"
    world.release("any")
    assert world.lease("labelled").state == "granted"


def test_a_drained_slot_sets_nothing_aside() -> None:
    """A ticket that needs more slots than are left is passed over: it blocks no other ticket."""
    world = world_with("a", "b")
    world.ask("holder")
    world.ask("both", {"p": 2})
    drain(world, "b", keep=True)
    world.release("holder")
    world.ask("one")
    assert world.lease("both").state == "waiting"
    assert world.lease("one").slots == {"p": ("a",)}


@pytest.mark.parametrize("what", ["nothing", "drained", "relabelled"])
def test_a_retry_keeps_no_slot_that_it_would_not_get(what: str) -> None:
    """A retry is a new grant: it does not keep a drained slot, nor one that lost its label.

    The control: without a change it keeps its slot, though another one is free.
    """
    world = world_with("a", "b", zone="x")
    wish = (Need("p", 1, wanted=wanted_of({"zone": "x"})),)
    world.ask("one", wish)
    (name,) = world.lease("one").slots["p"]
    if what == "drained":
        drain(world, name)
    elif what == "relabelled":
        world.do((slots.label(world.facts, "p", name, {"zone": "y"})[0], None))
    world.retry("one", make_ask("two", wish))
    assert (world.lease("two").slots == {"p": (name,)}) is (what == "nothing")
    assert world.lease("two").state == "granted"
    assert (name in world.facts.slots["p"]) is (what != "drained")


def test_a_held_slot_is_not_removed() -> None:
    """Removing a held slot is refused, and says who holds it."""
    world = world_with("a")
    world.ask("one", owner="ann")
    with Refused(Code.SLOT_IN_USE) as refused:
        slots.remove(world.facts, "p", "a")
    assert "held by ann" in refused.message


def test_boskos_configuration_leaves_native_slots_alone() -> None:
    """A configuration removes no slots and no pools of the native API, nor takes their names."""
    world = world_with("a")
    config = SlotConfig((ResourceType("p", names=("x",)), ResourceType("other", names=("a", "y"))))
    made, problems = sync(world.facts, world.wall, config, lambda: "fresh")
    assert set(made.pools) == {"other"}
    assert set(made.slots) == {("other", "y")}
    assert len(problems) == 2
    empty, _ = sync(world.facts, world.wall, SlotConfig(), lambda: "fresh")
    assert not empty


def test_slots_of_a_configuration_can_be_kept_drained_only() -> None:
    """A slot of Boskos' file would be made again: it can be drained with `keep`, not removed."""
    world = World()
    world.slots("p", "a")
    with Refused(Code.INVALID):
        slots.drain(world.facts, world.wall, "p", "a", keep=False, reason="")
    drain(world, "a", keep=True)
    assert world.facts.slots["p"]["a"].drain is not None
