"""Bookings of slots that are not all free: what Boskos' clients and janitors may take."""

from moorage.core.admission.admit import admit
from moorage.core.admission.compat.boskos import AcquireRequest, now_or_never
from moorage.core.admission.model import FREE, Need
from moorage.core.clock import SECOND
from moorage.core.ids import BookingId, LeaseId
from tests.core.admission.build import World

CLEANING = (Need("p", 1, "dirty", "cleaning"),)


def slotted(**states: str) -> World:
    """Return a pool with slots in these states."""
    world = World()
    world.pool("p", None)
    for name, state in states.items():
        world.slots("p", name, state=state)
    return world


def takes(world: World, state: str, dest: str) -> bool:
    """Does a client get a slot at once that asks without a request id?"""
    asked = AcquireRequest("p", state, dest, "janitor", "", LeaseId("taken"), "")
    once = now_or_never(world.facts, world.moment, asked)
    made = admit(world.facts, world.moment, world.wall, at_once=[once])
    return "taken" in made.leases


def test_a_janitor_cleans_slots_for_a_booking() -> None:
    """A lease without an end, of a slot that no booking could use: afterwards it can."""
    world = slotted(x="dirty")
    world.book("b", {"p": 1}, (0, 200))
    world.ask("mine", {"p": 1}, booking=BookingId("b"))
    assert takes(world, "dirty", "cleaning")
    world.ask("janitor", CLEANING, pull=True)
    assert world.states()["janitor"] == "g"
    world.release("janitor")
    assert world.states()["mine"] == "g"


def test_the_control_a_free_slot_is_kept_from_a_janitor() -> None:
    """As are all that are booked."""
    world = slotted(x=FREE)
    world.book("b", {"p": 1}, (0, 200))
    assert not takes(world, FREE, "cleaning")
    world.ask("janitor", {"p": 1}, pull=True)
    assert world.states()["janitor"] == "w"


def test_who_asks_at_once_gets_no_slot_that_is_kept() -> None:
    """Dirty slots count for the profile of the pool, but they do not replace the free one."""
    world = slotted(x=FREE, y="dirty", z="dirty")
    world.book("b", {"p": 1}, (0, 200))
    assert not takes(world, FREE, "busy")
    world.ask("queued", {"p": 1}, hold=10 * SECOND)
    assert world.states()["queued"] == "w"


def test_the_control_a_second_free_slot_is_taken_at_once() -> None:
    """Only as many as are booked are kept."""
    world = slotted(x=FREE, y=FREE, z="dirty")
    world.book("b", {"p": 1}, (0, 200))
    assert takes(world, FREE, "busy")
