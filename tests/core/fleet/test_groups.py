"""Groups of agents and their defaults."""

import pytest

from moorage.core.errors import Code
from moorage.core.fleet import groups
from moorage.core.fleet.model import Goal
from tests.core.fleet.build import A1, A2, A3, SMALL, Refused, World, part

HALF = Goal(percent=50.0)


@pytest.fixture
def world() -> World:
    """Return a world with group `edge`, two members that have registered, and another agent."""
    made = World()
    for uuid, group in ((A1, "edge"), (A2, "edge"), (A3, "default")):
        made.create(uuid, group=group)
        made.register(uuid=uuid, parts=[part(agent=uuid)])
    return made


def wanted(world: World) -> list[int]:
    """Return what is desired of each agent in total."""
    agents = world.facts.agents.values()
    return [sum(one.desired for one in world.classes(agent.uuid).values()) for agent in agents]


def test_new_defaults_reach_the_members(world: World) -> None:
    """Members follow in the same decision, each with one more desired generation."""
    changes = world.group("edge", [A1, A2], **{SMALL: HALF})
    assert wanted(world) == [50, 50, 0]
    assert set(changes.agents) == {A1, A2}
    assert world.agent(A1).desired_generation == 1
    assert world.facts.groups["edge"].generation == 2


def test_equal_defaults_change_nothing(world: World) -> None:
    """An equal request keeps the generation of the group and of its members."""
    world.group("edge", [A1, A2], **{SMALL: HALF})
    assert not world.group("edge", [A1, A2], **{SMALL: HALF})
    world.group("edge", [A1, A2])
    assert wanted(world) == [0, 0, 0]
    assert world.facts.groups["edge"].generation == 3


def test_members_can_follow_later(world: World) -> None:
    """Members of a large group follow in other decisions, once."""
    world.group("edge", [A1], **{SMALL: HALF})
    assert wanted(world) == [50, 0, 0]
    assert world.do(groups.follow(world.facts, world.now, A2))
    assert wanted(world) == [50, 50, 0]
    assert not world.do(groups.follow(world.facts, world.now, A2))


def test_goals_of_members_stay(world: World) -> None:
    """A default does not change what was set for an agent."""
    world.goal(Goal(amount=7))
    world.group("edge", [A1, A2], **{SMALL: HALF})
    assert wanted(world) == [7, 50, 0]


def test_decommissioned_members_do_not_follow(world: World) -> None:
    """Nothing is desired of a machine that is gone."""
    world.decommission(A1)
    before = world.agent(A1)
    world.group("edge", [A1, A2], **{SMALL: HALF})
    assert world.agent(A1) == before


def test_a_new_group(world: World) -> None:
    """A new group has its first generation, with or without defaults."""
    world.group("a/b.c")
    changes = world.group("new", **{SMALL: HALF})
    assert [world.facts.groups[name].generation for name in ("a/b.c", "new")] == [1, 1]
    assert world.facts.groups["new"].desired == {SMALL: HALF}
    assert not changes.agents


@pytest.mark.parametrize(
    ("name", "desired"),
    [
        ("", {}),
        ("a b", {}),
        ("a//b", {}),
        ("..", {}),
        ("x" * 201, {}),
        ("edge", {SMALL: Goal()}),
        ("edge", {SMALL: Goal(percent=101.0)}),
        ("edge", {"pages": HALF}),
        ("edge", {f"CUSTOM_{n}": HALF for n in range(65)}),
    ],
)
def test_invalid_groups(world: World, name: str, desired: dict[str, Goal]) -> None:
    """Names and defaults must be valid."""
    with Refused(Code.INVALID):
        groups.put(world.facts, world.now, name, desired)


def test_a_group_with_agents_stays(world: World) -> None:
    """Only a group without active agents can be deleted."""
    with Refused(Code.GROUP_IN_USE) as refusal:
        groups.delete(world.facts, "edge", 2)
    assert "2 agents" in refusal.message
    world.do(groups.delete(world.facts, "edge", 0))
    assert "edge" not in world.facts.groups
    with Refused(Code.GROUP_NOT_FOUND):
        groups.delete(world.facts, "edge", 0)
