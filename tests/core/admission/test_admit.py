"""Who may start: gangs whole, in order, and nothing stays free that could be granted."""

import pytest

from tests.core.admission.build import World


@pytest.fixture
def world() -> World:
    """Return a world with pool p of two units."""
    made = World()
    made.pool("p", 2)
    return made


def test_two_gangs_of_two_on_a_pool_of_two(world: World) -> None:
    """One of them, then the other; never a part of each."""
    world.ask("a", {"p": 2})
    world.ask("b", {"p": 2})
    assert world.states() == {"a": "g", "b": "w"}
    world.release("a")
    assert world.states() == {"a": "released", "b": "g"}
