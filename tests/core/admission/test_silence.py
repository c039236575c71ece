"""How long the holder of a slot is silent for Boskos' reaper, whatever clocks and outages do."""

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
    """A world with one slot `s` in a pool `p`, which a client of Boskos has just acquired."""
    made = World()
    made.slots("p", "s")
    made.ask("a", owner="boskos:x", ttl=NEVER)
    assert made.states() == {"a": "g"}
    return made


def stale(world: World, jump: int = 0) -> list[str]:
    """Return what a reaper would take, if the wall clock has jumped so far (microseconds)."""
    wall = Instant(world.wall + jump)
    _, taken = slots_by_name.reset(world.facts, world.moment, wall, "p", "leased", EXPIRE, "dirty")
    return list(taken)


def heartbeat(world: World) -> None:
    """Let the client say that it is alive."""
    made = slots_by_name.update(world.facts, world.moment, world.wall, "s", "x", "leased", {})
    world.do((made, None))


def test_silence_counts_from_the_last_sign_of_life(world: World) -> None:
    """The control: what nobody was heard of for is taken, and a heartbeat postpones it."""
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
    """A machine that was suspended, or a clock that was set, takes nobody's resources away."""
    assert stale(world, HOUR) == []
    world.now += 20 * SECOND
    heartbeat(world)
    world.now += 20 * SECOND
    assert stale(world, HOUR) == []
    world.now += 10 * SECOND
    assert stale(world, HOUR) == ["s"]


def test_an_outage_is_no_silence(world: World) -> None:
    """While nobody served, nobody could be heard: the holder's time stands still."""
    world.now += 20 * SECOND + HOUR
    world.facts.timeline = structs.replace(world.facts.timeline, downtime=HOUR)
    assert stale(world) == []
    world.now += 10 * SECOND
    assert stale(world) == ["s"]


def test_a_slot_of_an_earlier_release_is_judged_by_its_time(world: World) -> None:
    """Where the sign of life was not stored, the time that Boskos shows is all there is."""
    slot = world.facts.slots["p"]["s"]
    world.facts.slots["p"]["s"] = structs.replace(slot, heard_at=None)
    assert stale(world) == []
    assert stale(world, HOUR) == ["s"]
