"""Agents and groups like those of decisions, and batches to save them, for store tests."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes, Facts, Keys
from moorage.core.fleet.model import (
    Agent,
    AgentPlan,
    Failure,
    Goal,
    Group,
    Liveness,
    MachineFacts,
    MachineReport,
    ManagedClass,
    Part,
    Phase,
    PlanOutcome,
    Policy,
    Readiness,
    Silence,
    Source,
    State,
)
from moorage.core.ids import AgentId, ProviderId
from moorage.store.api import Engine
from moorage.store.batch import batch_save
from moorage.store.fleet import load
from moorage.store.fleet.save import FleetPart
from tests.service.fleet.machines import PAGES, agent_id, part_id
from tests.store.build import NOW, consumer_id

DEFAULT = Group("default", Instant(0), Instant(0))
"""The group that every database has from the start."""


def agent(n: int, **values: Any) -> Agent:
    """Return the n-th agent as it was just created, unless `values` say otherwise."""
    return replace(Agent(agent_id(n), n, "default", NOW, NOW, generation=1), **values)


def group(name: str, **values: Any) -> Group:
    """Return a group without defaults, unless `values` say otherwise."""
    return replace(Group(name, NOW, NOW, generation=1), **values)


def offering(n: int, **values: Any) -> Agent:
    """Return the n-th agent with a machine of one part that offers 100 pages."""
    managed = ManagedClass(1_000, goal=Goal(amount=100), source=Source.AGENT, desired=100)
    part = Part("numa0", ProviderId(agent_id(n)), {PAGES: replace(managed, actual=100)})
    plain = agent(
        n,
        root=ProviderId(agent_id(n)),
        owns_root=True,
        readiness=Readiness.READY,
        boot_id="boot-1",
        parts={part_id(n): part},
    )
    return replace(plain, **values)


def whole_agent(n: int = 1) -> Agent:
    """Return an agent in which no field has its default."""
    root, when = ProviderId(agent_id(90 + n)), Instant(NOW + 1)
    failure = Failure("hugepages_short", 'the kernel\n"gave" fewer ü', 3, when, Instant(NOW + 2))
    managed = ManagedClass(
        2**31 - 1,
        volatile=False,
        max_unit=512,
        step_size=2,
        goal=Goal(percent=57.3),
        source=Source.PLACEMENT,
        desired=2**31 - 1,
        actual=7,
        present=False,
    )
    told = MachineReport(
        *("boot-9", 2**53, 4, Phase.DONE),
        {part_id(n): {PAGES: 7}},
        frozenset({consumer_id(1), consumer_id(2)}),
        failure,
    )
    return Agent(
        uuid=agent_id(n),
        number=7,
        group="rack/b\\'1",
        created_at=NOW,
        updated_at=when,
        labels={"rack": "a\"'{}", "ü": ""},
        operator_labels={"ü": ""},
        root=root,
        given_root=root,
        accepted=False,
        owns_root=True,
        policy=Policy.NO_PROVISION,
        policy_reason="new fans",
        policy_by="ann",
        policy_until=Instant(NOW + 3),
        state=State.DECOMMISSIONED,
        readiness=Readiness.DEGRADED,
        liveness=Liveness.LOST,
        boot_id="boot-9",
        past_boots=tuple(f"boot-{past}" for past in range(8)),
        facts=MachineFacts("host", "6.18", "0.1"),
        parts={part_id(n): Part("numa0", root, {PAGES: managed}, present=False, born=3)},
        report_generation=2**53,
        report=told,
        confirmed=frozenset({consumer_id(1)}),
        desired_generation=5,
        desired_generation_seen=4,
        phase=Phase.DONE,
        failure=failure,
        generation=6,
        registered_at=Instant(NOW + 4),
        reported_at=Instant(NOW + 5),
        returned_at=Instant(NOW + 6),
        silence=Silence.ALL,
        plan=AgentPlan("ba85", "boot-9", PlanOutcome.DONE, Instant(NOW + 7), "60e3"),
    )


def changed(*values: Agent | Group) -> Changes:
    """Return changes with these after-images."""
    changes = Changes()
    for value in values:
        if isinstance(value, Agent):
            changes.agents[value.uuid] = value
        else:
            changes.groups[value.name] = value
    return changes


async def run(engine: Engine, keys: Keys, decide: Callable[[Facts], Changes]) -> int:
    """Load, decide, save and commit; return the revision, 0 without followers."""
    async with engine.transaction() as transaction:
        facts = await transaction.run(load.facts_load(keys))
        told = await transaction.run(batch_save([FleetPart(decide(facts))], [], NOW))
        await transaction.commit()
    return 0 if told is None else told[1]


async def saved(engine: Engine, *values: Agent | Group) -> int:
    """Save these values; return the revision."""
    return await run(engine, Keys(), lambda _: changed(*values))


async def facts_of(engine: Engine, keys: Keys) -> Facts:
    """Load facts outside of a batch."""
    async with engine.transaction() as transaction:
        return await transaction.run(load.facts_load(keys))


def ids(*numbers: int) -> set[AgentId]:
    """Return the UUIDs of these agents."""
    return {agent_id(n) for n in numbers}
