"""Random reports of two groups beside random writes of the Placement API, against a simple model.

The model says in its own words what each report and each write makes of a node. After every step
both services know what the model says, a repeat of the report changes nothing, and what is refused
has changed nothing.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec import structs

from moorage.core.errors import Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.reported import Mode, Node, NodeAnswer
from moorage.service.app import Service
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import Join, Sender
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from moorage.store.open import open_engine
from tests.service.fleet.pair import Pair
from tests.service.fleet.reporters.node_model import (
    NOVA,
    Model,
    after_absent,
    after_present,
    is_foreign,
    raised,
    shown,
    tidy,
)
from tests.service.fleet.reporters.reporting import TTL, instance
from tests.service.running import CLASSES, TESTER, TRAITS, claim, consumer_id, fatal, provider_id

NODES = 5
STEPS = 60
SEEDS = 5
GROUPS = ("g", "h")
CUSTOM_TRAITS = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
NAMES = tuple(f"n{n}" for n in range(NODES + 1))
AGGREGATES = tuple(AggregateId(f"{n:08d}-bbbb-4bbb-8bbb-bbbbbbbbbbbb") for n in range(2))


class NovaPair(Pair):
    """Two services that know nova's trait."""

    async def _service(self) -> Service:
        engine = open_engine(self.url)
        traits = TRAITS | {NOVA}
        service = await Service.start(engine, self.clock, CLASSES, traits, on_fatal=fatal)
        await service.fleet.liveness_loop.stop()
        return service


class Explorer:
    """Plays steps, and compares the ledger with the model after each."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair = pair
        self.random = Random(seed)
        self.model: dict[ProviderId, Model] = {}
        self.tokens: dict[str, str] = {}
        self.done: list[str] = []

    async def run(self) -> None:
        """Play all steps."""
        await self.prepare()
        for step in range(STEPS):
            if self.random.random() < 0.5:
                await self.report()
            else:
                await self.random.choice(
                    (
                        self.inventories,
                        self.traits,
                        self.aggregates,
                        self.allocate,
                        self.free,
                        self.delete,
                        self.create,
                        self.rename,
                        self.child,
                    )
                )()
            await self.compare()
            if step == STEPS // 2:
                await self.pair.end()
                await self.pair.start()
        await self.pair.check()

    async def prepare(self) -> None:
        """Create the custom traits, and let a reporter join each group."""
        for name in CUSTOM_TRAITS:
            await self.pair.submit(vocabulary_cases.TraitEnsure(name))
        for group in GROUPS:
            found = await self.pair.services[0].transactor.submit(
                Join(group, "m", instance(1), 60 * TTL)
            )
            self.tokens[group] = found.member.token

    def service(self) -> Service:
        """Return some service."""
        return self.random.choice(self.pair.services)

    async def compare(self) -> None:
        """Both services know what the model says."""
        for service in self.pair.services:
            catalog = await service.index.current()
            for n in range(NODES):
                uuid = provider_id(n)
                assert shown(catalog.record(uuid)) == tidy(self.model.get(uuid)), self.done[-6:]

    async def records(self) -> dict[ProviderId, ProviderRecord | None]:
        """Return all nodes as they are now."""
        catalog = await self.service().index.current()
        found = {provider_id(n): catalog.record(provider_id(n)) for n in range(NODES)}
        # Each process counts versions of its own.
        return {u: None if r is None else structs.replace(r, version=0) for u, r in found.items()}

    # --- reports

    def spec(self) -> InventorySpec:
        """Return figures that are mostly valid."""
        total = self.random.randrange(1, 4)
        return InventorySpec(
            total,
            self.random.randrange(total + (self.random.random() < 0.1) + 1),
            allocation_ratio=self.random.choice((1.0, 1.0, 2.0)),
        )

    def some(self, of: Any) -> Any:
        """Return some of these."""
        return frozenset(one for one in of if self.random.random() < 0.4)

    def node(self, n: int) -> Node:
        """Return what a report says of a node."""
        if self.random.random() < 0.25:
            return Node(provider_id(n), absent=True)
        names = ("VCPU", "DISK_GB", "CUSTOM_GOLD")
        return Node(
            provider_id(n),
            self.random.choice((NAMES[n], NAMES[n], NAMES[n], self.random.choice(NAMES), None)),
            inventories=None
            if self.random.random() < 0.2
            else {name: self.spec() for name in sorted(self.some(names))},
            traits=None
            if self.random.random() < 0.2
            else self.some((*CUSTOM_TRAITS, "STORAGE_DISK_SSD")),
            aggregates=None if self.random.random() < 0.4 else self.some(AGGREGATES),
        )

    async def report(self) -> None:
        """Report some nodes, twice."""
        group = self.random.choice(GROUPS)
        mode = Mode.OWNER if self.random.random() < 0.75 else Mode.BESIDE_NOVA
        picked = self.random.sample(range(NODES), self.random.randrange(1, NODES + 1))
        sent = [self.node(n) for n in picked]
        self.done.append(f"{group} {mode} {sent}")
        before = await self.records()
        sender = Sender(group, "m", self.tokens[group], mode)
        service = self.service()
        answers = await service.reporters.report(
            sender, ReportedNodes(sent), Pieces(service.turns), TESTER
        )
        after = await self.records()
        for node, answer in zip(sent, answers, strict=True):
            self.follow(node, answer, before, after, sender)
        revision = await self.pair.revision()
        service = self.service()
        again = await service.reporters.report(
            sender, ReportedNodes(sent), Pieces(service.turns), TESTER
        )
        retried = False
        for node, first, second in zip(sent, answers, again, strict=True):
            if first.refusal is None:
                assert second.outcome == "unchanged", (node, first, second)
                assert (second.generation, second.ghost) == (first.generation, first.ghost)
            elif second.refusal is None:
                retried = True
                assert first.refusal.code in ("duplicate_provider", "provider_has_children")
                now = await self.records()
                self.follow(node, second, after, now, sender)
        if not retried:
            assert await self.pair.revision() == revision

    def follow(
        self,
        node: Node,
        answer: NodeAnswer,
        before: dict[ProviderId, ProviderRecord | None],
        after: dict[ProviderId, ProviderRecord | None],
        sender: Sender,
    ) -> None:
        """Let the model follow an answer."""
        uuid = node.uuid
        old, new = before[uuid], after[uuid]
        generation = None if new is None else new.provider.generation
        assert answer.generation == generation, answer
        was = self.model.get(uuid)
        foreign = node.absent and is_foreign(was, sender.group, sender.mode)
        if answer.refusal is not None:
            assert answer.refusal.code in (
                "invalid",
                "duplicate_provider",
                "inventory_in_use",
                "provider_has_children",
                "not_owner",
            ), answer
            assert (answer.refusal.code == "not_owner") == foreign
            assert old == new
            return
        assert not foreign
        after_report = after_absent if node.absent else after_present
        now = after_report(was, node, sender.group, sender.mode)
        kind = str(answer.outcome)
        if tidy(now) == tidy(was):
            assert kind == "unchanged", (self.done[-1], was)
            assert old == new
        elif now is None:
            assert kind == "removed"
        else:
            assert kind == ("created" if was is None else "updated")
            start = 0 if old is None else old.provider.generation
            assert generation == start + raised(was, now)
        if now is None:
            self.model.pop(uuid, None)
        else:
            self.model[uuid] = now

    # --- writes of the Placement API

    def known(self) -> ProviderId | None:
        """Return a node that has a provider."""
        return self.random.choice(sorted(self.model)) if self.model else None

    async def _write(self, uuid: ProviderId, command: Any, after: Model | None) -> None:
        self.done.append(repr(command))
        try:
            await self.service().transactor.submit(command)
        except Error as error:
            self.done.append(str(error))
            return
        if after is None:
            self.model.pop(uuid, None)
        else:
            self.model[uuid] = after

    async def _generation(self, uuid: ProviderId) -> int:
        record = (await self.records())[uuid]
        assert record is not None
        return record.provider.generation

    async def inventories(self) -> None:
        """Replace all inventories."""
        if (uuid := self.known()) is None:
            return
        specs = {name: self.spec() for name in sorted(self.some(("VCPU", "DISK_GB")))}
        after = replace(
            self.model[uuid],
            inventories={n: (s.total, s.reserved, s.allocation_ratio) for n, s in specs.items()},
        )
        command = provider_cases.InventoriesReplace(uuid, await self._generation(uuid), specs)
        await self._write(uuid, command, after)

    async def traits(self) -> None:
        """Replace all traits, sometimes none."""
        if (uuid := self.known()) is None:
            return
        was = self.model[uuid]
        wanted = self.some((*CUSTOM_TRAITS, "STORAGE_DISK_SSD", NOVA))
        command: Any = provider_cases.TraitsReplace(uuid, await self._generation(uuid), wanted)
        if self.random.random() < 0.2:
            wanted, command = frozenset(), provider_cases.TraitsDelete(uuid)
        claims = {group: claimed & wanted for group, claimed in was.claims.items()}
        await self._write(uuid, command, replace(was, traits=wanted, claims=claims))

    async def aggregates(self) -> None:
        """Replace all aggregates."""
        if (uuid := self.known()) is None:
            return
        wanted = self.some(AGGREGATES)
        command = provider_cases.AggregatesReplace(uuid, wanted, await self._generation(uuid))
        await self._write(uuid, command, replace(self.model[uuid], aggregates=wanted))

    async def allocate(self) -> None:
        """Allocate one unit; each node has a consumer of its own."""
        if (uuid := self.known()) is None or self.model[uuid].used:
            return
        command = claim(int(uuid[:8]), uuid, VCPU=1)
        await self._write(uuid, command, replace(self.model[uuid], used={"VCPU": 1}))

    async def free(self) -> None:
        """End the allocation of a node."""
        if (uuid := self.known()) is None or not self.model[uuid].used:
            return
        command = allocation_cases.AllocationsDelete(consumer_id(int(uuid[:8])))
        await self._write(uuid, command, replace(self.model[uuid], used={}))

    async def delete(self) -> None:
        """Delete a provider."""
        if (uuid := self.known()) is not None:
            await self._write(uuid, provider_cases.ProviderDelete(uuid), None)

    async def create(self) -> None:
        """Create a provider with the UUID of a node."""
        uuid, name = provider_id(self.random.randrange(NODES)), self.random.choice(NAMES)
        if uuid not in self.model:
            await self._write(uuid, provider_cases.ProviderCreate(uuid, name), Model(name))

    async def rename(self) -> None:
        """Rename a provider."""
        if (uuid := self.known()) is not None:
            name = self.random.choice(NAMES)
            command = provider_cases.ProviderUpdate(uuid, name)
            await self._write(uuid, command, replace(self.model[uuid], name=name))

    async def child(self) -> None:
        """Create a child below a node, or delete it."""
        if (uuid := self.known()) is None:
            return
        below = provider_id(100 + int(uuid[:8]))
        if (await self.service().index.current()).record(below) is None:
            command: Any = provider_cases.ProviderCreate(below, f"child-{below}", uuid)
        else:
            command = provider_cases.ProviderDelete(below)
        await self._write(uuid, command, self.model[uuid])


def explore(url: str, seed: int) -> None:
    """Play one seed."""

    async def run() -> None:
        pair = NovaPair(url)
        await pair.start()
        try:
            await Explorer(pair, seed).run()
        finally:
            await pair.end()

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_reports_beside_placement(url: str, seed: int) -> None:
    """What the model says."""
    explore(url, seed)
