"""What is closed while an agent is silent: its own classes, or every class of its machine."""

import pytest
from msgspec.structs import replace

from moorage.core.fleet import groups
from moorage.core.fleet.model import Agent, Liveness, Policy, Silence
from moorage.core.fleet.offers import why_nothing, why_withheld
from tests.core.fleet.build import A1, World, ready


def silent(silence: Silence, liveness: Liveness, *, owns_root: bool = False) -> Agent:
    """Return a ready agent of a group with this setting."""
    world = ready()
    world.do(groups.put(world.facts, world.now, "default", {}, [A1], silence))
    return replace(world.agent(), liveness=liveness, owns_root=owns_root)


@pytest.mark.parametrize("liveness", [Liveness.LATE, Liveness.LOST])
def test_all_closes_the_tree_of_others(liveness: Liveness) -> None:
    """By default only the agent's own classes are closed: others do not speak through it."""
    own, every = (silent(one, liveness) for one in Silence)
    assert (why_withheld(own), why_nothing(own)) == (None, liveness.value)
    assert (why_withheld(every), why_nothing(every)) == (liveness.value, liveness.value)
    assert why_withheld(silent(Silence.OWN, liveness, owns_root=True)) == liveness.value


def test_an_agent_that_is_heard_closes_nothing() -> None:
    """A policy of operators comes first."""
    heard = silent(Silence.ALL, Liveness.FRESH)
    assert why_withheld(heard) is None
    drained = replace(heard, policy=Policy.NO_PROVISION, liveness=Liveness.LOST)
    assert why_withheld(drained) == "no_provision"


def test_members_follow_their_group() -> None:
    """At once or later; no setting leaves it as it is, and another group has its own."""
    world = ready()
    world.do(groups.put(world.facts, world.now, "default", {}, silence=Silence.ALL))
    assert world.agent().silence is Silence.OWN
    assert not groups.follows(world.agent(), world.facts.groups["default"])
    world.do(groups.follow(world.facts, world.now, A1))
    assert world.agent().silence is Silence.ALL
    world.do(groups.put(world.facts, world.now, "default", {}, [A1]))
    assert world.agent().silence is Silence.ALL
    world.create(group="rack")
    assert world.agent().silence is Silence.OWN


def test_an_equal_setting_changes_nothing() -> None:
    """Neither the group nor its members."""
    world = World()
    world.do(groups.put(world.facts, world.now, "g", {}, silence=Silence.ALL))
    assert not groups.put(world.facts, world.now, "g", {}, silence=Silence.ALL)
    assert groups.put(world.facts, world.now, "g", {}, silence=Silence.OWN)
