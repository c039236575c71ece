"""What machines should have: goals, defaults of groups, and totals that Placement clients write."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.errors import Code
from moorage.core.fleet import desired
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Goal, Readiness, Source
from moorage.core.fleet.parts import ClassSpec
from moorage.core.ids import ProviderId
from moorage.core.limits import MAX_INT
from tests.core.fleet.build import A1, BIG, N0, N1, ROOT, SMALL, Refused, World, part, ready

TWO = [part("numa0", **{SMALL: 100, BIG: 4}), part("numa1", **{SMALL: 60})]


@pytest.fixture
def world() -> World:
    """Return a world with a machine of two parts, for which nothing is desired."""
    made = World()
    made.create()
    made.register(parts=TWO)
    return made


def write(world: World, totals: dict[tuple[ProviderId, str], int]) -> Changes:
    """Write totals as a client of the Placement API."""
    return world.do(desired.overwritten(world.facts, world.now, A1, totals))


def figures(world: World) -> dict[str, tuple[int, str]]:
    """Return what is desired of each class, and why."""
    return {key: (one.desired, str(one.source)) for key, one in world.classes().items()}


def test_nothing_is_desired_at_first(world: World) -> None:
    """Without goals and defaults nothing is desired, and the agent changes nothing."""
    assert desired.amounts(world.agent()) == {N0: {}, N1: {}}
    assert set(figures(world).values()) == {(0, "none")}
    assert world.agent().desired_generation == 0


def test_a_goal_for_one_part_and_for_all(world: World) -> None:
    """An amount without a provider is meant for every part that has the class."""
    world.goal(Goal(amount=10))
    assert desired.amounts(world.agent()) == {N0: {SMALL: 10}, N1: {SMALL: 10}}
    world.goal(Goal(amount=20), provider=N1)
    assert desired.amounts(world.agent()) == {N0: {SMALL: 10}, N1: {SMALL: 20}}
    assert world.agent().desired_generation == 2


def test_an_equal_goal_changes_nothing(world: World) -> None:
    """An equal goal keeps both generations; one of the same amount keeps the desired one."""
    world.goal(Goal(amount=50), provider=N0)
    assert not world.goal(Goal(amount=50), provider=N0)
    generation = world.agent().generation
    world.goal(Goal(percent=50.0), provider=N0)
    assert world.agent().desired_generation == 1
    assert world.agent().generation == generation + 1


def test_shares_are_rounded_down_to_the_step(world: World) -> None:
    """A share of what is eligible is resolved when it is set and at each register."""
    parts = [part(**{SMALL: ClassSpec(100, step_size=16)})]
    world.register(parts=parts)
    world.goal(Goal(percent=99.0))
    assert world.small().desired == 96
    world.register(parts=[part(**{SMALL: ClassSpec(50, step_size=16)})])
    assert (world.small().desired, world.agent().desired_generation) == (48, 2)
    world.register("boot-2", [part(**{SMALL: ClassSpec(15, step_size=16)})])
    assert (world.small().desired, world.agent().desired_generation) == (0, 3)


@pytest.mark.parametrize(
    ("percent", "eligible", "amount"),
    [(57.3, 1000, 573), (0.1, 1000, 1), (0.1, 999, 0), (100.0, MAX_INT, MAX_INT), (29.0, 100, 29)],
)
def test_shares_are_exact(percent: float, eligible: int, amount: int) -> None:
    """A share is that of the decimal number, without errors of binary fractions."""
    assert desired.amount_of(Goal(percent=percent), eligible, 1) == amount


@given(st.integers(1, 1000), st.integers(0, MAX_INT), st.integers(1, 5000))
def test_a_share_is_the_largest_multiple(tenths: int, eligible: int, step: int) -> None:
    """A share is a multiple of the step, not above the exact share, and the largest such."""
    exact = Fraction(tenths, 1000) * eligible
    amount = desired.amount_of(Goal(percent=tenths / 10), eligible, step)
    assert amount % step == 0
    assert amount <= exact < amount + step


def test_a_goal_counts_before_the_default(world: World) -> None:
    """An own goal, then the default of the group, then 0; without a goal the default returns."""
    world.group("default", [A1], **{SMALL: Goal(percent=10.0)})
    assert figures(world)[f"numa0/{SMALL}"] == (10, "group")
    assert figures(world)[f"numa0/{BIG}"] == (0, "none")
    world.goal(Goal(amount=0), provider=N0)
    assert figures(world)[f"numa0/{SMALL}"] == (0, "agent")
    assert figures(world)[f"numa1/{SMALL}"] == (6, "group")
    world.goal(None, provider=N0)
    assert figures(world)[f"numa0/{SMALL}"] == (10, "group")


def test_a_new_part_gets_the_default(world: World) -> None:
    """The default of the group applies to what is registered later, and is a change for it."""
    world.group("default", [A1], **{SMALL: Goal(amount=5)})
    generation = world.agent().desired_generation
    world.register(parts=[*TWO, part("numa2", **{SMALL: 9})])
    assert figures(world)[f"numa2/{SMALL}"] == (5, "group")
    assert world.agent().desired_generation == generation + 1


def test_a_default_may_exceed_what_is_eligible(world: World) -> None:
    """The default is not lowered: a machine that cannot have it must be visible as degraded."""
    world.group("default", [A1], **{BIG: Goal(amount=5)})
    assert figures(world)[f"numa0/{BIG}"] == (5, "group")
    world.report({N0: {SMALL: 0, BIG: 4}, N1: {SMALL: 0}})
    assert world.agent().readiness is Readiness.DEGRADED


@pytest.mark.parametrize(
    ("goal", "name", "provider"),
    [
        (Goal(), SMALL, None),
        (Goal(amount=1, percent=1.0), SMALL, None),
        (Goal(amount=-1), SMALL, None),
        (Goal(amount=MAX_INT + 1), SMALL, None),
        (Goal(percent=0.0), SMALL, None),
        (Goal(percent=100.1), SMALL, None),
        (Goal(percent=float("nan")), SMALL, None),
        (Goal(amount=1), "CUSTOM_OTHER", None),
        (Goal(amount=1), SMALL, ROOT),
        (Goal(amount=1), BIG, N1),
        (Goal(amount=61), SMALL, None),
        (Goal(amount=101), SMALL, N0),
        (None, "CUSTOM_OTHER", None),
    ],
)
def test_invalid_goals(
    world: World, goal: Goal | None, name: str, provider: ProviderId | None
) -> None:
    """Goals must be possible, for registered classes, and either an amount or a share."""
    before = world.agent()
    with Refused(Code.INVALID):
        world.goal(goal, name, provider)
    assert world.agent() == before


def test_a_vanished_class_gets_no_goal(world: World) -> None:
    """Operators set goals for what the last register lists."""
    world.register(parts=[part(**{SMALL: 100})])
    for name, provider in ((BIG, N0), (SMALL, N1)):
        with Refused(Code.INVALID):
            world.goal(Goal(amount=1), name, provider)


def test_a_raised_amount_keeps_the_readiness() -> None:
    """A machine stays ready with what it has until its next report."""
    world = ready(50, 50)
    world.goal(Goal(amount=80))
    assert (world.agent().readiness, world.small().actual) == (Readiness.READY, 50)
    world.report(50)
    assert world.agent().readiness is Readiness.DEGRADED
    world.goal(Goal(amount=40))
    assert world.agent().readiness is Readiness.DEGRADED
    world.report(50)
    assert world.agent().readiness is Readiness.READY


def test_a_placement_client_sets_what_is_desired(world: World) -> None:
    """A written total is a goal, and lasts until an operator sets another one."""
    world.goal(Goal(percent=50.0))
    write(world, {(N0, SMALL): 70, (N0, BIG): 2})
    assert figures(world)[f"numa0/{SMALL}"] == (70, "placement")
    assert figures(world)[f"numa0/{BIG}"] == (2, "placement")
    assert figures(world)[f"numa1/{SMALL}"] == (30, "agent")
    assert world.agent().desired_generation == 2
    write(world, {(N0, SMALL): 0})
    assert figures(world)[f"numa0/{SMALL}"] == (0, "placement")
    world.goal(None)
    assert figures(world)[f"numa0/{SMALL}"] == (0, "none")


def test_a_written_total_may_exceed_what_is_eligible(world: World) -> None:
    """Placement has accepted it; it survives registers, and no more is offered for it."""
    write(world, {(N0, SMALL): 5000})
    world.register("boot-2", TWO)
    assert figures(world)[f"numa0/{SMALL}"] == (5000, "placement")


def test_totals_of_others_are_ignored(world: World) -> None:
    """Classes that the agent does not manage, and other providers, change nothing."""
    assert not write(world, {(N0, "VCPU"): 5, (ROOT, SMALL): 5})


def test_a_decommissioned_agent_follows_no_total(world: World) -> None:
    """The client's write stands; there is no machine to prepare anything."""
    world.decommission()
    before = world.agent()
    assert not write(world, {(N0, SMALL): 5})
    assert world.agent() == before
    with Refused(Code.DECOMMISSIONED):
        world.goal(Goal(amount=1))


def test_sources_are_those_that_clients_see(world: World) -> None:
    """Every source can occur."""
    seen = {world.small().source}
    world.group("default", [A1], **{SMALL: Goal(amount=1)})
    seen.add(world.small().source)
    world.goal(Goal(amount=2))
    seen.add(world.small().source)
    write(world, {(N0, SMALL): 3})
    seen.add(world.small().source)
    assert seen == set(Source)
