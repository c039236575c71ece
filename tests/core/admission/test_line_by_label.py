"""The line with labels, simulated: nobody starves, nobody waits beside a slot that fits."""

import random
from collections.abc import Callable

import pytest
from msgspec import structs

from moorage.core.admission.admit import order
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Need, Slot
from moorage.core.wishes import suits, wanted_of
from tests.core.admission.build import World

LABELS = ({}, {"region": "eu"}, {"region": "us"}, {"tier": "big"}, {"region": "eu", "tier": "big"})
SLOTS = (
    {"region": "eu", "tier": "big"},
    {"region": "eu"},
    {"region": "us"},
    {"region": "us", "tier": "big"},
    {},
)
STEPS = 400

Watch = Callable[[World, set[str]], None]
"""Looks at the world after a step, and at the names of leases that the step granted."""


def fits(slot: Slot, ticket: Lease) -> bool:
    """Could this free slot be granted to this ticket?"""
    return not slot.occupied and suits(slot.labels, ticket.needs[0].wanted)


def waiting(world: World) -> list[Lease]:
    """Return the tickets in the order of the line."""
    return sorted((t for t in world.facts.leases.values() if t.state == "waiting"), key=order)


def nobody_waits_beside_a_fitting_slot(world: World, _granted: set[str]) -> None:
    """Check that no slot is idle that a ticket of one unit could use."""
    for ticket in waiting(world):
        assert not any(fits(slot, ticket) for slot in world.facts.slots["p"].values()), ticket


def nobody_is_overtaken(world: World, granted: set[str]) -> None:
    """Check that no new lease has a slot that would have suited a ticket before it."""
    for name in granted:
        lease = world.lease(name)
        (slot,) = lease.slots["p"]
        taken = world.facts.slots["p"][slot]
        for ticket in waiting(world):
            before = order(ticket) < order(lease)
            assert not (before and suits(taken.labels, ticket.needs[0].wanted)), (ticket, lease)


def played(seed: int, watch: Watch, page: int = 1) -> World:
    """Let jobs with random labels ask and release; `watch` looks after every step."""
    rng, world = random.Random(seed), World(page)
    world.slots("p", *(f"s{n}" for n in range(len(SLOTS))))
    changes = Changes()
    for n, labels in enumerate(SLOTS):
        changes.slots["p", f"s{n}"] = structs.replace(
            world.facts.slots["p"][f"s{n}"], labels=labels
        )
    world.do((changes, None))
    held: set[str] = set()
    for step in range(STEPS):
        if held and rng.random() < 0.5:
            name = rng.choice(sorted(held))
            held.discard(name)
            world.release(name)
        elif len(waiting(world)) < 20:
            need = Need("p", 1, wanted=wanted_of(rng.choice(LABELS)))
            world.ask(f"j{step}", (need,), priority=rng.choice((0, 0, 0, 1)))
        now = {one.id for one in world.facts.leases.values() if one.state == "granted"}
        watch(world, {str(one) for one in now - held})
        held = {str(one) for one in now}
    return world


@pytest.mark.parametrize("seed", range(8))
def test_no_fitting_slot_is_idle_and_nobody_is_overtaken(seed: int) -> None:
    """After every step: no ticket waits beside a free slot that fits; none was overtaken for it."""

    def watch(world: World, granted: set[str]) -> None:
        nobody_waits_beside_a_fitting_slot(world, granted)
        nobody_is_overtaken(world, granted)

    played(seed, watch)


def test_a_line_in_strict_order_would_leave_slots_idle() -> None:
    """The control: if a ticket held up all tickets behind it, a fitting slot would be idle."""
    blocked = 0

    def watch(world: World, _granted: set[str]) -> None:
        nonlocal blocked
        line = waiting(world)
        # In strict order, all tickets behind the first one would still wait.
        blocked += any(
            order(line[0]) < order(lease)
            for lease in world.facts.leases.values()
            if line and lease.state == "granted"
        )

    played(0, watch)
    assert blocked > STEPS // 10


def test_a_ticket_for_a_rare_label_is_granted_although_others_keep_coming() -> None:
    """A line that never empties starves nobody: the next slot with the label is for the first."""
    world = World()
    world.slots("p", "rare", "other")
    slots = world.facts.slots["p"]
    rare = structs.replace(slots["rare"], labels={"region": "eu"})
    world.do((Changes(slots={("p", "rare"): rare}), None))
    world.ask("a")
    world.ask("b")
    wish = Need("p", 1, wanted=wanted_of({"region": "eu"}))
    world.ask("rare", (wish,))
    for n in range(50):
        world.ask(f"any{n}")
    for _ in range(3):
        for holder in [x for x in world.facts.leases.values() if x.state == "granted"]:
            world.release(str(holder.id))
        if world.lease("rare").state == "granted":
            break
    assert world.lease("rare").slots == {"p": ("rare",)}
