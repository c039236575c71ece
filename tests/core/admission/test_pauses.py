"""A pause may end by itself: a sweep ends it, and grants what waited."""

from moorage.core.admission import pools
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from tests.core.admission.build import Refused, World


def paused(seconds: float | None) -> World:
    """Return a world with a paused pool `p`, in whose line a waits."""
    world = World()
    world.pool("p", 1)
    world.pause("p", reason="rack 7", seconds=seconds)
    world.ask("a")
    return world


def test_it_ends_when_it_was_to_end() -> None:
    """Not before; the reason goes with it, and operators see a new generation."""
    world = paused(60)
    before = world.facts.pools["p"]
    world.wait(59.9)
    assert world.states() == {"a": "w"}
    world.wait(0.1)
    assert world.states() == {"a": "g"}
    after = world.facts.pools["p"]
    assert (after.paused, after.paused_until, after.pause_reason) == (False, None, "")
    assert after.generation == before.generation + 1


def test_it_ends_without_a_line() -> None:
    """Somebody looks in time although nobody waits."""
    world = World()
    world.pool("p", 1)
    world.pause("p", seconds=60)
    assert world.due() == world.now + 60 * SECOND
    world.wait(60)
    assert not world.facts.pools["p"].paused
    assert world.due() is None


def test_without_an_end_it_lasts() -> None:
    """Until somebody resumes the pool; nothing is due meanwhile."""
    world = paused(None)
    assert world.due() is None
    world.wait(100_000)
    assert world.states() == {"a": "w"}
    world.pause("p", False)
    assert world.states() == {"a": "g"}


def test_another_pause_replaces_its_end() -> None:
    """Also one without an end, and a resume removes it."""
    world = paused(60)
    world.pause("p", seconds=600)
    world.wait(61)
    assert world.facts.pools["p"].pause_reason == "rack 7"
    world.pause("p")
    assert world.facts.pools["p"].paused_until is None
    world.pause("p", seconds=60)
    world.pause("p", False)
    assert world.facts.pools["p"].wake_at is None


def test_it_has_an_author() -> None:
    """The one who changed it last; a pause that changes nothing is nobody's."""
    world = World()
    world.pool("p", 1)
    assert world.pause("p", reason="rack 7", by="alice").paused_by == "alice"
    assert world.pause("p", by="bob").paused_by == "alice"
    assert world.pause("p", seconds=60, by="bob").paused_by == "bob"
    world.wait(60)
    assert world.facts.pools["p"].paused_by == ""
    assert world.pause("p", by="alice").paused_by == "alice"
    assert world.pause("p", False, by="bob").paused_by == ""


def test_an_end_is_in_the_future() -> None:
    """And only a pause has one."""
    world = World()
    world.pool("p", 1)
    for seconds in (0, -1):
        with Refused(Code.INVALID):
            world.pause("p", seconds=seconds)
    until = Instant(world.now + SECOND)
    with Refused(Code.INVALID):
        pools.pause(world.facts, world.moment, world.wall, "p", False, "", until)
