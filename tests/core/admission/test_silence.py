"""The silence of a slot's holder that Boskos' reaper sees, despite clock jumps and outages."""

import pytest
from msgspec import structs

from moorage.core.admission.compat import slots_by_name
from moorage.core.admission.requests import NEVER
from moorage.core.clock import SECOND, Instant
from tests.core.admission.build import World

HOUR = 3_600 * SECOND
EXPIRE = 30 * SECOND * 1_000
"""Nanoseconds."""


@pytest.fixture
def world() -> World:
    """Return a world with a slot `s` in pool `p` that a client of Boskos has just acquired."""
    made = World()
    made.slots("p", "s")
    made.ask("a", owner="boskos:x", ttl=NEVER)
    assert made.states() == {"a": "g"}
    return made


def stale(world: World, jump: int = 0) -> list[str]:
    """Return the slots that a reaper would take after this jump (µs) of the wall clock."""
    wall = Instant(world.wall + jump)
    _, taken = slots_by_name.reset(world.facts, world.moment, wall, "p", "leased", EXPIRE, "dirty")
    return list(taken)


def heartbeat(world: World) -> None:
    """Update the slot, as the client does to show that it is alive."""
    made = slots_by_name.update(world.facts, world.moment, world.wall, "s", "x", "leased", {})
    world.do((made, None))


def test_silence_counts_from_the_last_sign_of_life(world: World) -> None:
    """Without jumps and outages, a slot is taken 30 s after the last heartbeat."""
    world.now += 29 * SECOND
    assert stale(world) == []
    world.now += SECOND
    assert stale(world) == ["s"]
    heartbeat(world)
    world.now += 29 * SECOND
    assert stale(world) == []
    world.now += SECOND
    assert stale(world) == ["s"]


def test_a_jump_of_the_wall_clock_is_no_silence(world: World) -> None:
    """A suspended machine or a changed clock does not take resources from their holders."""
    assert stale(world, HOUR) == []
    world.now += 20 * SECOND
    heartbeat(world)
    world.now += 20 * SECOND
    assert stale(world, HOUR) == []
    world.now += 10 * SECOND
    assert stale(world, HOUR) == ["s"]


def test_an_outage_is_no_silence(world: World) -> None:
    """An outage does not count as silence, since no heartbeat could arrive."""
    world.now += 20 * SECOND + HOUR
    world.facts.timeline = structs.replace(world.facts.timeline, downtime=HOUR)
    assert stale(world) == []
    world.now += 10 * SECOND
    assert stale(world) == ["s"]


def test_a_slot_without_a_stored_heartbeat(world: World) -> None:
    """Without a stored heartbeat, the update time that Boskos shows counts."""
    slot = world.facts.slots["p"]["s"]
    world.facts.slots["p"]["s"] = structs.replace(slot, heard_at=None)
    assert stale(world) == []
    assert stale(world, HOUR) == ["s"]
