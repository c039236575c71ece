"""Every case of the fleet loads what it reads: its decision is that with everything loaded."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import json

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.liveness import GroupCount
from moorage.core.fleet.model import Agent, Goal, Liveness, Policy
from moorage.core.fleet.policy import Action
from moorage.core.fleet.reporters import DeletedGroup
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.reported import Mode, Node
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.batch.batch import Batches, Item
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet import agent_cases, liveness_cases, policy_cases, reporter_cases
from moorage.service.fleet.agent_cases import AgentCase
from moorage.service.fleet.liveness_cases import GroupCase
from moorage.service.fleet.plan_cases import AgentPlanned
from moorage.service.fleet.reporter_cases import (
    Join,
    Leave,
    Observe,
    PinNodes,
    ReportUnit,
    Sender,
)
from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests.service.fleet.machines import PAGES, agent_id, machine, part_id, report
from tests.service.fleet.reporters.reporting import GROUP, TTL, instance
from tests.service.running import TESTER, ManualClock, provider_id
from tests.support import cluster

AGENTS = range(4)
GROUPS = ("default", "rack", "row/2")
BATCHES = 150

EVERYTHING = Keys(
    LedgerKeys(
        trees={ProviderId(agent_id(n)) for n in AGENTS},
        providers={part_id(n) for n in AGENTS},
        names={
            *(name for n in AGENTS for name in (f"host-{n}", f"host-{n}_numa0")),
            *(f"node-{n}" for n in AGENTS),
        },
        tags={provider_id(n) for n in AGENTS},
        parents={provider_id(n) for n in AGENTS},
        classes={PAGES},
        traits={"CUSTOM_T"},
    ),
    fleet=FleetKeys(
        groups={*GROUPS},
        agents={agent_id(n) for n in AGENTS},
        roots={ProviderId(agent_id(n)) for n in AGENTS},
        number=True,
        reporters={GROUP},
        pins={(GROUP, provider_id(n)) for n in AGENTS},
    ),
)


GONE = DeletedGroup(GROUP, Instant(0), 0, 0)


class ClearWhatIsLeft(reporter_cases.ClearUnit):
    """Clears the last deletion, whenever that was."""

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        self.deleted = world.fleet.deleted_groups.get(GROUP, self.deleted)
        return super().decide(world, when)


class LoadEverything(UseCase[None]):
    """Loads all there is, and changes nothing."""

    def keys(self) -> Keys:
        return EVERYTHING

    def decide(self, world: World, when: When) -> Changes:
        return Changes()

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


def stranger(n: int) -> Agent:
    """Return an agent as it is known to a caller that has not heard of its registration."""
    return Agent(agent_id(n), n, "default", Instant(0), Instant(0))


NOTHING = ReshapePlan()
"""The plan of a machine that has its shape already."""


def drawn(dice: Random) -> Callable[[], UseCase[Any]]:
    """Return a function that makes a random case."""
    n, group = dice.choice(AGENTS), dice.choice(GROUPS)
    one, by = agent_id(n), TESTER
    root = ProviderId(agent_id(dice.choice(AGENTS)))
    boot = dice.choice(("boot-1", "boot-1", "boot-2"))
    goal = dice.choice((None, Goal(amount=dice.choice((0, 60, 100))), Goal(percent=5.0)))
    count = {group: GroupCount(4, dice.choice((1, 4)))}
    silent = [(stranger(m), dice.choice((Liveness.LATE, Liveness.LOST))) for m in AGENTS]
    return dice.choice(
        (
            partial(agent_cases.AgentPut, one, by, group, {}, dice.choice((None, *Policy))),
            partial(agent_cases.AgentEnroll, one, by, group, {}),
            partial(agent_cases.AgentRoot, one, by, root),
            partial(agent_cases.AgentRegister, one, by, machine(n, boot, root=root)),
            *[partial(agent_cases.AgentRegister, one, by, machine(n, boot))] * 4,
            *[
                partial(
                    agent_cases.AgentReport,
                    one,
                    by,
                    report(n, dice.randrange(6), dice.choice((0, 50, 100)), boot),
                )
            ]
            * 4,
            partial(AgentPlanned, one, by, report(n, dice.randrange(6), 50, boot), NOTHING, "d"),
            *[partial(policy_cases.AgentPolicy, one, by, dice.choice([*Action]), "why")] * 2,
            *[partial(policy_cases.AgentDesired, one, by, DesiredSpec(PAGES, goal=goal))] * 3,
            partial(policy_cases.DrainOver, one, by),
            partial(policy_cases.GroupPut, group, {PAGES: goal} if goal else {}, by),
            partial(policy_cases.GroupFollow, [*map(stranger, AGENTS)]),
            partial(policy_cases.GroupDelete, group, by),
            *[partial(liveness_cases.LivenessSweep, silent, count)] * 3,
            partial(liveness_cases.AgentReturned, one, by),
            partial(liveness_cases.GroupRelax, group, by, GroupCount(4, 0)),
            partial(liveness_cases.GroupConfirm, group, by),
            partial(liveness_cases.GroupWait, group, by, 600 * SECOND),
            *_drawn_reporters(dice),
        )
    )


def _drawn_reporters(dice: Random) -> list[Callable[[], UseCase[Any]]]:
    """Return functions that make random cases of reporters."""
    member, total = dice.choice("ab"), dice.choice((1, 2))
    uuids = [provider_id(n) for n in AGENTS]
    nodes = [Node(provider_id(n), absent=True) for n in AGENTS]
    if dice.random() < 0.7:
        inventories, traits = {PAGES: InventorySpec(total)}, frozenset({"CUSTOM_T"})
        nodes = [
            Node(provider_id(n), f"node-{n}", inventories=inventories, traits=traits)
            for n in AGENTS
        ]
    sender = Sender(GROUP, member, f"1.{dice.randrange(1, 6)}", Mode.OWNER)
    cases: list[Callable[[], UseCase[Any]]] = [
        *[partial(Join, GROUP, member, instance(dice.randrange(3)), TTL)] * 2,
        partial(Leave, GROUP, member, None),
        partial(Observe, GROUP, ["c"], Instant(dice.randrange(9)), ""),
        partial(PinNodes, GROUP, [provider_id(1)], dice.choice((None, "a")), TESTER),
        *[partial(ReportUnit, sender, nodes, TESTER)] * 4,
        partial(reporter_cases.GroupDelete, GROUP, TESTER),
        *[partial(ClearWhatIsLeft, GONE, [*uuids], [*uuids], dice.random() < 0.5)] * 2,
        partial(reporter_cases.ForgetDeleted, GONE),
    ]
    return cases


class Twice:
    """Decides each batch twice; the decision with everything loaded is committed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.clock = ManualClock()
        service_clock = ServiceClock(self.clock, alone=not engine.shared)
        self.batches = Batches(self.clock, service_clock, frozenset(), frozenset())
        self.accepted: set[type] = set()

    async def decided(self, cases: list[UseCase[Any]], *, commit: bool) -> dict[str, Any]:
        """Return the changes and answers of a batch."""
        loop = asyncio.get_running_loop()
        extra = ExtraLoads()
        while True:
            items = [Item(loop.create_future(), one, one.keys()) for one in cases]
            async with self.engine.transaction() as transaction:
                try:
                    made = await self.batches.run(items, extra, transaction)
                except Restart as restart:
                    extra.add(restart.needs)
                    continue
                if commit and made.written:
                    await transaction.commit()
            if commit:
                self.accepted |= {_kind(one.work) for one in items if one.refusal is None}
            return self._results(made, [one for one in items if not _loads(one)])

    def _results(self, made: Any, items: list[Item]) -> dict[str, Any]:
        fleet, ledger = made.changes.fleet, made.changes.ledger
        values = {f"agent {key}": one for key, one in fleet.agents.items()}
        values |= {f"group {key}": one for key, one in fleet.groups.items()}
        values |= {f"provider {key}": one for key, one in ledger.providers.items()}
        values |= {f"inventory {key}": one for key, one in ledger.inventories.items()}
        values |= {f"tags {key}": one for key, one in ledger.tags.items()}
        values |= {f"reporters {key}": one for key, one in fleet.reporter_groups.items()}
        values |= {f"deleted {key}": one for key, one in fleet.deleted_groups.items()}
        values |= {f"reporter {key}": one for key, one in fleet.members.items()}
        values |= {f"pin {key}": one for key, one in fleet.pins.items()}
        values |= {f"answer {n}": _answer(one) for n, one in enumerate(items)}
        values["audit"] = [
            (row.action, row.target, json.decode(row.after or "null")) for row in made.rows
        ]
        return {
            key: _timeless(json.decode(json.encode(v, enc_hook=str))) for key, v in values.items()
        }


def _kind(work: Any) -> type:
    return reporter_cases.ClearUnit if isinstance(work, ClearWhatIsLeft) else type(work)


def _loads(item: Item) -> bool:
    return isinstance(item.work, LoadEverything)


def _answer(item: Item) -> object:
    if isinstance(item.refusal, Error):
        return f"{item.refusal.code}: {item.refusal.message}"
    return item.answer if item.refusal is None else repr(item.refusal)


def _timeless(value: Any) -> Any:
    """Return a value without times: each batch has its own stamps."""
    if isinstance(value, dict):
        return {
            k: _timeless(v)
            for k, v in value.items()
            if k != "at" and not k.endswith(("_at", "_since", "_until"))
        }
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def _kinds(of: type) -> set[type]:
    below = [one for one in of.__subclasses__() if one.__module__.startswith("moorage.")]
    found = set().union(*map(_kinds, below)) if below else {of}
    return {one for one in found if ".fleet." in one.__module__}


async def played(url: str, seeds: range) -> set[type]:
    """Play random batches; return the kinds of cases that were accepted at least once."""
    engine = open_engine(url)
    try:
        twice = Twice(engine)
        for seed in seeds:
            dice = Random(seed)
            for _ in range(BATCHES):
                twice.clock.at = Instant(twice.clock.at + SECOND)
                makers = [drawn(dice) for _ in range(dice.choice((1, 1, 2, 3)))]
                own = await twice.decided([make() for make in makers], commit=False)
                whole = [LoadEverything(), *(make() for make in makers)]
                assert own == await twice.decided(whole, commit=True), makers
        return twice.accepted
    finally:
        await engine.close()


def test_each_case_loads_what_it_reads(tmp_path: Path) -> None:
    """On SQLite; every kind of case occurs, and not only with refusals."""
    accepted: set[type] = set()
    for seed in range(4):
        url = f"sqlite:///{tmp_path}/{seed}.sqlite"
        accepted |= asyncio.run(played(url, range(seed, seed + 1)))
    kinds = _kinds(AgentCase) | _kinds(GroupCase) | _kinds(UseCase)
    assert accepted - {LoadEverything} == {agent_cases.AgentReport, *kinds}


def test_each_case_loads_what_it_reads_on_postgres() -> None:
    """The same on PostgreSQL, whose statements differ."""
    asyncio.run(played(cluster.fresh(), range(9, 10)))


def test_an_omitted_key_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: a case that does not load its group decides by other defaults."""
    monkeypatch.setattr(policy_cases.GroupPut, "keys", lambda self: Keys(fleet=FleetKeys()))
    with pytest.raises(AssertionError):
        asyncio.run(played(f"sqlite:///{tmp_path}/m.sqlite", range(3)))
