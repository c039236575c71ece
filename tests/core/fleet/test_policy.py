"""What operators do with machines; `test_combinations.py` tries all combinations."""

import pytest
from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.fleet import policy
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Agent, Policy, State
from moorage.core.fleet.policy import TRANSITIONS, Action
from tests.core.fleet.build import A1, A2, Refused, World, ready


@pytest.fixture
def world() -> World:
    """Return a world with a ready machine."""
    return ready()


def test_the_table_is_whole() -> None:
    """The table has every action in every combination of state and policy."""
    everything = {(state, one) for state in State for one in Policy}
    assert set(TRANSITIONS) == everything
    assert all(set(actions) == set(Action) for actions in TRANSITIONS.values())


def test_nothing_leaves_what_is_final() -> None:
    """A decommissioned agent stays so, and an expunged one can only be decommissioned."""
    for (state, before), actions in TRANSITIONS.items():
        for outcome in actions.values():
            if isinstance(outcome, Code):
                continue
            if state is State.DECOMMISSIONED:
                assert outcome == (state, before)
            if before is Policy.EXPUNGED:
                assert outcome[1] is Policy.EXPUNGED


def test_a_change_records_why_and_who(world: World) -> None:
    """Reason, operator and end are those of the last change."""
    until = Instant(world.now + 60 * SECOND)
    world.drain(reason="new disk", who="bob", until=until)
    agent = world.agent()
    assert (agent.policy_reason, agent.policy_by, agent.policy_until) == ("new disk", "bob", until)
    world.do(policy.resume(world.facts, world.now, A1, "disk is in", "ann"))
    agent = world.agent()
    assert (agent.policy, agent.policy_reason, agent.policy_by, agent.policy_until) == (
        Policy.IN_SERVICE,
        "disk is in",
        "ann",
        None,
    )


def test_a_repeat_changes_nothing(world: World) -> None:
    """The first reason and operator stay, and the generation."""
    world.drain()
    before = world.agent()
    assert not world.drain(reason="another", who="bob")
    world.do(policy.resume(world.facts, world.now, A1, "", "ann"))
    assert not world.do(policy.resume(world.facts, world.now, A1, "again", "bob"))
    assert world.agent().generation == before.generation + 1


def test_the_reason_of_a_policy_stays_with_it(world: World) -> None:
    """Who prolongs a drain, or decommissions, without a reason does not erase the first one."""
    until = Instant(world.now + 60 * SECOND)
    world.drain(reason="new disk", who="bob")
    world.do(policy.drain(world.facts, world.now, A1, "", "ann", until))
    agent = world.agent()
    assert (agent.policy_reason, agent.policy_by, agent.policy_until) == ("new disk", "bob", until)
    world.do(policy.expunge(world.facts, world.now, A1, "burnt", "bob"))
    world.do(policy.decommission(world.facts, world.now, A1, "", "ann", used=False))
    agent = world.agent()
    assert (agent.state, agent.policy_reason, agent.policy_by) == (
        State.DECOMMISSIONED,
        "burnt",
        "bob",
    )


def test_another_end_changes_a_drain(world: World) -> None:
    """An operator may prolong a drain, shorten it, or let it last for ever."""
    first, second = (Instant(world.now + n * SECOND) for n in (60, 90))
    world.drain(until=first)
    assert world.drain(until=second, reason="longer")
    assert (world.agent().policy_until, world.agent().policy_reason) == (second, "longer")
    assert world.drain()
    assert world.agent().policy_until is None
    with Refused(Code.INVALID):
        world.drain(until=world.now)


def over(world: World, now: int) -> Changes:
    """End the drain if it is over at this time."""
    return world.do(policy.drain_over(world.agent(), Instant(now)))


def test_a_drain_ends_at_its_time(world: World) -> None:
    """A drain with an end is over then, not before; any other policy is never over."""
    until = world.now + 60 * SECOND
    assert not over(world, until)
    world.drain(until=Instant(until))
    assert not over(world, until - 1)
    assert over(world, until)
    agent = world.agent()
    assert (agent.policy, agent.policy_by, agent.policy_until) == (
        Policy.IN_SERVICE,
        "moorage",
        None,
    )
    assert not over(world, until)
    world.drain()
    assert not over(world, until + 10**15)


def test_expunging_cancels_the_end_of_a_drain(world: World) -> None:
    """An expunged machine never returns by itself."""
    until = Instant(world.now + 60 * SECOND)
    world.drain(until=until)
    world.expunge()
    assert world.agent().policy_until is None
    assert not over(world, until + 1)


def decommission(world: World, **more: bool) -> Changes:
    """Decommission the machine."""
    return world.do(policy.decommission(world.facts, world.now, A1, "scrap", "ann", **more))


def test_a_used_machine_is_decommissioned_only_by_force(world: World) -> None:
    """Allocations refuse it, unless the operator says that they mean nothing."""
    world.expunge()
    with Refused(Code.HAS_ALLOCATIONS):
        decommission(world, used=True)
    assert decommission(world, used=True, force=True)
    assert world.agent().state is State.DECOMMISSIONED
    assert not decommission(world, used=True)


def test_decommissioning_frees_the_root(world: World) -> None:
    """The root is no longer that of an active machine."""
    root = world.agent().root
    assert root is not None
    assert world.facts.roots[root] == A1
    world.decommission()
    assert root not in world.facts.roots


def test_reasons_are_checked(world: World) -> None:
    """Reasons are short texts, and agents must exist."""
    for reason in ("x" * 1_001, "a\x1b[2J"):
        with Refused(Code.INVALID):
            world.drain(reason=reason)
    with Refused(Code.AGENT_NOT_FOUND):
        world.drain(A2)


def test_only_policy_and_state_change(world: World) -> None:
    """An operator's action changes no amount, no readiness and no liveness."""

    def rest(agent: Agent) -> Agent:
        words = {"policy_reason": "", "policy_by": "", "policy_until": None}
        kept = {"updated_at": agent.created_at, "generation": 0}
        return replace(agent, policy=Policy.IN_SERVICE, state=State.ACTIVE, **words, **kept)

    before = rest(world.agent())
    world.drain()
    assert rest(world.agent()) == before
    world.decommission()
    assert rest(world.agent()) == before
