"""Agents are created by operators or enroll, and register at each start."""

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.core.errors import Code
from moorage.core.fleet import registering
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.model import Goal, Liveness, MachineFacts, Phase, Policy, Readiness
from moorage.core.fleet.parts import ClassSpec
from moorage.core.ids import AgentId, ProviderId
from tests.core.fleet.build import (
    A1,
    A2,
    BIG,
    C1,
    N0,
    ROOT,
    SMALL,
    Refused,
    World,
    failure,
    part,
    ready,
    spec,
)


@pytest.fixture
def world() -> World:
    """Return a world with one agent that has not registered."""
    made = World()
    made.create()
    return made


def enroll(world: World, uuid: AgentId = A1, group: str = "edge") -> Changes:
    """Enroll an agent."""
    return world.do(registering.enroll(world.facts, world.now, uuid, group, {"a": "b"}, "robot"))


def test_a_new_agent() -> None:
    """A new agent is in service, unregistered and fresh; its group is created with it."""
    world = World()
    changes = world.create(labels={"rack": "7"}, group="edge/north")
    agent = world.agent()
    assert (agent.policy, agent.readiness, agent.liveness) == (
        Policy.IN_SERVICE,
        Readiness.UNREGISTERED,
        Liveness.FRESH,
    )
    assert (agent.labels, agent.group, agent.generation) == ({"rack": "7"}, "edge/north", 1)
    assert (agent.policy_by, agent.boot_id, agent.root) == ("ann", None, None)
    assert set(changes.groups) == {"edge/north"}


def test_numbers_are_unique() -> None:
    """Every agent has its own number, which it keeps."""
    world = World()
    world.create(A1)
    world.create(A2)
    world.create(A1, labels={"a": "b"})
    assert (world.agent(A1).number, world.agent(A2).number) == (1, 2)
    assert world.facts.next_number == 3


def test_an_equal_put_changes_nothing(world: World) -> None:
    """An equal request keeps the generation, a different one raises it and replaces all labels."""
    world.create(labels={"a": "b"})
    assert world.agent().generation == 2
    assert not world.create(labels={"a": "b"})
    world.create(labels={"c": "d"})
    assert world.agent().generation == 3
    assert world.agent().labels == {"c": "d"}
    assert world.agent().created_at < world.agent().updated_at


def test_a_put_may_change_the_policy(world: World) -> None:
    """A put accepts an enrolled agent and drains one, but does not undo expunging."""
    world.create(wanted=Policy.NO_PROVISION)
    assert (world.agent().policy, world.agent().policy_by) == (Policy.NO_PROVISION, "ann")
    world.create()
    assert world.agent().policy is Policy.NO_PROVISION
    world.create(wanted=Policy.IN_SERVICE, who="bob")
    assert (world.agent().policy, world.agent().policy_by) == (Policy.IN_SERVICE, "bob")
    world.create(wanted=Policy.EXPUNGED)
    with Refused(Code.POLICY_FINAL):
        world.create(wanted=Policy.IN_SERVICE)


def test_a_put_with_the_present_policy_keeps_the_end_of_a_drain(world: World) -> None:
    """A put says nothing about `until`, so it does not change it."""
    until = world.now + 100_000_000
    world.drain(until=until)
    world.create(wanted=Policy.NO_PROVISION, labels={"a": "b"})
    assert (world.agent().policy_until, world.agent().policy_reason) == (until, "work")


@pytest.mark.parametrize(
    "more",
    [
        {"uuid": "host-1"},
        {"uuid": str(A1).upper()},
        {"group": ""},
        {"group": "../up"},
        {"group": "Edge"},
        {"group": "x" * 201},
        {"labels": {"x" * 64: ""}},
        {"labels": {"a": "\n"}},
    ],
)
def test_invalid_agents(more: dict[str, Any]) -> None:
    """Ids, groups and labels must be valid."""
    with Refused(Code.INVALID):
        World().create(**more)


def test_a_new_group_gives_its_defaults() -> None:
    """An agent that changes its group follows the defaults of the new one."""
    world = ready(wanted=50)
    world.goal(None)
    world.group("edge", **{SMALL: Goal(percent=30.0)})
    assert world.small().desired == 0
    generation = world.agent().desired_generation
    world.create(group="edge")
    assert world.small().desired == 30
    assert world.agent().desired_generation == generation + 1


def test_enrolled_agents_wait_for_an_operator() -> None:
    """Nothing is placed on an enrolled machine until an operator accepts it."""
    world = World()
    enroll(world)
    agent = world.agent()
    assert (agent.policy, agent.policy_reason) == (Policy.NO_PROVISION, "enrolled, not accepted")
    assert (agent.policy_by, agent.group, agent.labels) == ("robot", "edge", {"a": "b"})
    world.create(group="edge", wanted=Policy.IN_SERVICE)
    assert (world.agent().policy, world.agent().policy_reason) == (Policy.IN_SERVICE, "")


def test_only_accepted_agents_take_providers_of_others() -> None:
    """An enroller could otherwise close any machine: its agents close what they have as root."""
    world = World()
    enroll(world)
    world.give()
    with Refused(Code.NOT_ACCEPTED):
        world.register(root=ROOT)
    world.drain()  # by hand, but it is not accepted either
    with Refused(Code.NOT_ACCEPTED):
        world.register(root=ROOT)
    world.create(group="edge", wanted=Policy.IN_SERVICE)
    world.drain()
    world.register(root=ROOT)
    world.expunge()
    assert world.register("boot-2", root=ROOT), "it has this root already"


def test_an_expunged_agent_takes_no_provider_of_others() -> None:
    """Expunging an agent that nobody knows must not let it close somebody else's machine."""
    world = World()
    enroll(world)
    world.expunge()
    for root in (ROOT, ProviderId(A1)):
        with Refused(Code.POLICY_FINAL):
            world.register(root=root)
    world.register()


def test_an_agent_enrolls_once() -> None:
    """A second time is refused, and so is the id of a decommissioned agent."""
    world = World()
    enroll(world)
    with Refused(Code.AGENT_EXISTS):
        enroll(world, group="other")
    world.decommission()
    with Refused(Code.DECOMMISSIONED):
        enroll(world)


def test_only_known_agents_register() -> None:
    """An operator's put or an enrolment must come first."""
    with Refused(Code.AGENT_NOT_FOUND):
        World().register()


def test_the_first_register(world: World) -> None:
    """The machine is preparing, has nothing, and its root has the agent's UUID."""
    world.register()
    agent = world.agent()
    assert (agent.root, agent.owns_root) == (ProviderId(A1), True)
    assert (agent.readiness, agent.phase, agent.report) == ("preparing", "preparing", None)
    assert (agent.boot_id, agent.past_boots) == ("boot-1", ())
    assert agent.facts == MachineFacts("host-1", "6.18", "0.1")
    assert agent.registered_at == agent.updated_at
    assert world.small().eligible == 100
    assert (world.small().actual, world.small().desired) == (0, 0)


def test_a_new_boot_empties_volatile_classes() -> None:
    """Volatile amounts are 0 after a boot, others stay, and the report generation continues."""
    world = World()
    world.create()
    parts = [part(**{SMALL: 100, BIG: ClassSpec(10, volatile=False)})]
    world.register(parts=parts)
    world.report({N0: {SMALL: 7, BIG: 3}}, consumers=frozenset({C1}), failure=failure())
    world.register("boot-2", parts)
    agent = world.agent()
    assert {name: one.actual for name, one in world.classes().items()} == {
        f"numa0/{SMALL}": 0,
        f"numa0/{BIG}": 3,
    }
    assert (agent.boot_id, agent.past_boots) == ("boot-2", ("boot-1",))
    assert (agent.readiness, agent.phase) == (Readiness.PREPARING, Phase.PREPARING)
    assert (agent.report, agent.failure, agent.confirmed) == (None, None, frozenset())
    assert agent.report_generation == 1


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_an_amount_is_kept_only_if_it_never_was_volatile(before: bool, after: bool) -> None:
    """A class that becomes or was volatile has nothing after a boot: nobody knows what is there."""
    world = World()
    world.create()
    world.register(parts=[part(**{SMALL: ClassSpec(100, volatile=before)})])
    world.report(7)
    world.register("boot-2", [part(**{SMALL: ClassSpec(100, volatile=after)})])
    assert world.small().actual == 0


def test_an_equal_register_changes_nothing() -> None:
    """Within a boot an equal register is idempotent, also in another order of parts."""
    world = World()
    world.create()
    parts = [part("numa0"), part("numa1")]
    world.register(parts=parts)
    world.report({one.provider: {SMALL: 5} for one in parts})
    assert not world.register(parts=parts[::-1])
    assert world.agent().readiness is Readiness.READY


def test_a_changed_register_of_the_same_boot_is_taken_over() -> None:
    """Facts, labels and parts follow; what was reported stays."""
    world = ready()
    generation = world.agent().generation
    world.register(parts=[part(**{SMALL: ClassSpec(80, max_unit=10, step_size=5)})])
    world.do(
        registering.register(
            world.facts, world.now, A1, replace(spec(), facts=MachineFacts("host-2"))
        )
    )
    agent = world.agent()
    assert (agent.facts, agent.readiness, agent.generation) == (
        MachineFacts("host-2"),
        Readiness.READY,
        generation + 2,
    )
    assert (world.small().eligible, world.small().actual, agent.boot_id) == (100, 50, "boot-1")
    assert agent.registered_at == agent.updated_at


def test_a_machine_changes_its_own_labels_only(world: World) -> None:
    """Those of operators are stronger, and a put keeps what only the machine has set."""
    world.create(labels={"rack": "7"})
    world.register(labels={"kernel": "old", "rack": "8"})
    assert world.agent().labels == {"rack": "7", "kernel": "old"}
    assert not world.create(labels={"rack": "7"})
    world.create(labels={"service": "db"})
    assert world.agent().labels == {"service": "db", "kernel": "old"}
    world.register(labels={"kernel": "new", "service": "none"})
    assert world.agent().labels == {"service": "db", "kernel": "new"}
    world.register(labels=None)
    assert world.agent().labels == {"service": "db"}
    assert not world.register(labels={})
    with Refused(Code.INVALID):
        world.register(labels={f"label-{n}": "" for n in range(32)})


def test_superseded_boots_never_return(world: World) -> None:
    """The last eight boots before the current one are refused, whichever of them comes back."""
    for n in range(10):
        world.register(f"boot-{n}")
    assert world.agent().past_boots == tuple(f"boot-{n}" for n in range(1, 9))
    for n in range(1, 9):
        with Refused(Code.SUPERSEDED_BOOT):
            world.register(f"boot-{n}")
    assert world.register("boot-0")


def test_decommissioned_agents_never_register(world: World) -> None:
    """An agent's UUID is used up for ever."""
    world.register()
    world.decommission()
    for boot in ("boot-1", "boot-2"):
        with Refused(Code.DECOMMISSIONED):
            world.register(boot)
    with Refused(Code.DECOMMISSIONED):
        world.create()


def test_a_given_root(world: World) -> None:
    """A root that others created is kept, and its classes are not the agent's."""
    world.give()
    world.register(root=ROOT)
    assert (world.agent().root, world.agent().owns_root) == (ROOT, False)
    assert world.agent().parts[N0].parent == ROOT
    with Refused(Code.CLASS_MANAGED) as refusal:
        world.register(parts=[replace(part(), provider=ROOT)], root=ROOT)
    assert "child" in refusal.message


def test_a_machine_has_one_active_agent(world: World) -> None:
    """A root belongs to one agent, until that one is decommissioned."""
    world.create(A2)
    for uuid in (A1, A2):
        world.give(uuid=uuid)
    world.register(root=ROOT)
    with Refused(Code.ROOT_TAKEN):
        world.register(uuid=A2, parts=[], root=ROOT)
    with Refused(Code.ROOT_TAKEN):
        world.register(uuid=A2, parts=[], root=ROOT)
    world.decommission(A1)
    world.register(uuid=A2, parts=[], root=ROOT)
    assert world.agent(A2).root == ROOT


@pytest.mark.parametrize(("first", "second"), [(None, ROOT), (ROOT, None), (ROOT, ProviderId(A1))])
def test_the_root_never_changes(
    world: World, first: ProviderId | None, second: ProviderId | None
) -> None:
    """Another root is refused, even in another boot."""
    if first is not None:
        world.give(first)
    world.register(root=first)
    for boot in ("boot-1", "boot-2"):
        with Refused(Code.INVALID):
            world.register(boot, root=second)


@pytest.mark.parametrize(
    "more",
    [
        {"boot_id": ""},
        {"boot_id": "x" * 65},
        {"boot_id": "a\x00"},
        {"facts": MachineFacts("")},
        {"facts": MachineFacts("x" * 201)},
        {"facts": MachineFacts("a", kernel="x" * 256)},
        {"facts": MachineFacts("a", version="\u202e")},
        {"root": "compute-1"},
    ],
)
def test_invalid_registers(world: World, more: dict[str, Any]) -> None:
    """Invalid texts are refused, and nothing changes."""
    before = world.agent()
    with Refused(Code.INVALID):
        registering.register(world.facts, world.now, A1, replace(spec(), **more))
    assert world.agent() == before
