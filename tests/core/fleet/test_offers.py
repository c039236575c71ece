"""What an agent offers, and why not more; `test_combinations.py` tries all combinations."""

import pytest

from moorage.core.fleet import offers
from moorage.core.fleet.model import Goal, ManagedClass, Part
from moorage.core.ids import ProviderId
from tests.core.fleet.build import BIG, N0, N1, SMALL, World, failure, part, ready


def why(world: World, uuid: ProviderId = N0, name: str = SMALL) -> tuple[int, str | None]:
    """Return what is offered of a class, and why not more."""
    agent = world.agent()
    one = agent.parts[uuid]
    managed = one.classes[name]
    return offers.offered(agent, one, managed), offers.why_less(agent, one, managed)


@pytest.mark.parametrize(("there", "offered"), [(50, 50), (60, 50), (49, 49), (1, 1)])
def test_the_smaller_of_both(there: int, offered: int) -> None:
    """Neither more than is desired nor more than is there."""
    assert why(ready(there, 50)) == (offered, None if offered == 50 else "not_there")


def test_a_failure_explains_what_is_missing() -> None:
    """The reason is the code of the reported failure, as long as something is missing."""
    world = ready()
    world.report(49, failure=failure("fragmented"))
    assert why(world) == (49, "fragmented")
    world.report(50, failure=failure("fragmented"))
    assert why(world) == (50, None)


def test_what_is_not_registered_any_more() -> None:
    """A part or class that the last register omits offers nothing, for its own reason."""
    world = World()
    world.create()
    world.register(parts=[part("numa0", **{SMALL: 100, BIG: 4}), part("numa1")])
    world.goal(Goal(amount=4))
    world.goal(Goal(amount=4), BIG)
    world.register()
    world.report(4)
    assert why(world) == (4, None)
    assert why(world, N0, BIG) == (0, "not_registered")
    assert why(world, N1) == (0, "not_registered")
    world.drain()
    assert why(world, N1) == (0, "no_provision")


def test_absence_counts_before_amounts() -> None:
    """A class that is not registered offers nothing, even if an amount is stored for it."""
    agent = ready().agent()
    for whole, listed in ((True, False), (False, True), (False, False)):
        managed = ManagedClass(9, desired=9, actual=9, present=listed)
        one = Part("numa9", None, {SMALL: managed}, present=whole)
        assert offers.offered(agent, one, managed) == 0


def test_nothing_desired_needs_no_reason() -> None:
    """Where nothing is desired, nothing is missing."""
    world = ready(0, 0)
    world.expunge()
    assert why(world) == (0, None)
