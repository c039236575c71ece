"""Clients of the Placement API that move, delete, reshape and use whatever machines register.

Nothing is known in advance of what the service answers. After each step its own check, which
derives every offer again, must find nothing, and nothing may be used beyond what was offered when
it was taken.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from moorage.core.clock import SECOND
from moorage.core.errors import Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, MachineFacts, MachineReport, Phase, State
from moorage.core.fleet.parts import ClassSpec, PartSpec
from moorage.core.fleet.policy import Action
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.bulk import ProviderSpec
from moorage.core.ledger.capacity import capacity_of
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory, Provider, ProviderRecord
from moorage.service.fair_turns import Pieces
from moorage.service.ledger import provider_cases as cases
from moorage.service.ledger.allocation_cases import AllocationsDelete, AllocationsReplace, Reshape
from moorage.service.ledger.bulk import providers_upsert
from tests.service.fleet.machines import (
    PAGES,
    agent_desired,
    agent_id,
    agent_policy,
    agent_put,
    part_id,
)
from tests.service.running import TESTER, ManualClock, Running, consumer_id, provider_id, running

LARGE = "CUSTOM_HUGEPAGES_1GB"
CLASSES = (PAGES, LARGE, "VCPU")
PARTS = ("numa0", "numa1")
GIVEN = 2
"""Every second agent gets a root that a client has created."""

Pair = tuple[ProviderId, str]


class ClientSimulation:
    """Some agents, providers and consumers, at the mercy of a random client."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = Random(f"clients-{seed}")
        self.path = folder / "m.sqlite"
        self.clock = ManualClock()
        self.one: Running
        self.agents = list(range(1, 5))
        self.boots = dict.fromkeys(self.agents, 0)
        self.consumers = [consumer_id(n) for n in range(6)]
        self.log: deque[str] = deque(maxlen=40)
        self.taken = 0

    def story(self) -> str:
        """Return the seed and what happened last."""
        return "\n".join([f"seed {self.seed}; the last events:", *self.log])

    async def run(self, steps: int) -> "ClientSimulation":
        """Take random steps."""
        async with running(self.path, clock=self.clock) as self.one:
            await self.one.service.fleet.liveness_loop.stop()
            for n in range(1, 5):
                await self.one.provider(n, VCPU=8)
            for n in self.agents:
                await self.put(n)
                await self.register(n)
            for _ in range(steps):
                try:
                    await self.step()
                except Exception as error:
                    error.add_note(self.story())
                    raise
        return self

    async def step(self) -> None:
        """Do one thing, then check everything."""
        actions: dict[Callable[[], Awaitable[None]], int] = {
            self.message: 20,
            self.operate: 8,
            self.group: 3,
            self.allocate: 10,
            self.reshape: 6,
            self.write: 10,
            self.tree: 20,
            self.bulk: 3,
            self.pass_time: 4,
            self.succeed: 1,
        }
        (action,) = self.random.choices([*actions], [*actions.values()])
        before = self.inventories()
        try:
            await action()
            self.log.append(f"   {action.__name__}: done")
        except Error as refused:
            self.log.append(f"   {action.__name__}: {refused.code} {refused.message[:90]}")
        found = await self.one.service.operations.check()
        assert not found, found
        self.check_used(before, recorded=action == self.reshape)

    def note(self, *words: object) -> None:
        """Write down an event."""
        self.log.append(" ".join(map(str, words)))

    # What there is.

    def providers(self) -> dict[ProviderId, Provider]:
        """Return all providers."""
        return {uuid: record.provider for uuid, record in self.records().items()}

    def inventories(self) -> dict[Pair, Inventory]:
        """Return all inventories."""
        return {
            (uuid, name): inventory
            for uuid, record in self.records().items()
            for name, inventory in record.inventories.items()
        }

    def records(self) -> dict[ProviderId, ProviderRecord]:
        """Return all providers, with what they have."""
        catalog = self.one.service.index.catalog
        found = {uuid: catalog.record(uuid) for uuid in catalog.places}
        return {uuid: record for uuid, record in found.items() if record is not None}

    def agent(self, n: int) -> Agent:
        """Return an agent."""
        agent = self.one.service.fleet.directory.get(agent_id(n))
        assert agent is not None
        return agent

    def uuids(self) -> list[ProviderId]:
        """Return the UUIDs that providers may have."""
        own = [ProviderId(agent_id(n)) for n in self.agents]
        parts = [part_id(n, name) for n in self.agents for name in PARTS]
        return [*own, *parts, *(provider_id(n) for n in range(1, 7))]

    def roots(self) -> list[ProviderId]:
        """Return the roots of the machines."""
        return [provider_id(n) if n % GIVEN == 0 else ProviderId(agent_id(n)) for n in self.agents]

    def check_used(self, before: dict[Pair, Inventory], *, recorded: bool) -> None:
        """Whatever is used more than before was offered, unless it was only recorded."""
        for pair, inventory in self.inventories().items():
            old = before.get(pair)
            if inventory.used > (old.used if old else 0) and not recorded:
                self.taken += 1
                assert inventory.used <= capacity_of(inventory), pair

    # Agents.

    async def put(self, n: int) -> None:
        """Create an agent, or move it to another group."""
        group = self.random.choice(["default", "rack"])
        await agent_put(self.one.service.fleet, agent_id(n), group, {}, None, TESTER, self.given(n))

    def given(self, n: int) -> ProviderId | None:
        """Return the root that an operator gives a machine; None: the server creates it."""
        return provider_id(n) if n % GIVEN == 0 else None

    async def register(self, n: int) -> None:
        """A machine registers: mostly the same boot, perhaps with other parts."""
        random = self.random
        if not self.boots[n] or random.random() < 0.4:
            self.boots[n] += 1
        parts = []
        for name in PARTS:
            listed = [c for c in (PAGES, LARGE) if random.random() < 0.8]
            if random.random() < 0.85:
                volatile = random.random() < 0.7
                found = {c: ClassSpec(random.choice([10, 20]), volatile) for c in listed}
                parts.append(PartSpec(part_id(n, name), name, found))
        root = self.given(n)
        facts = MachineFacts(f"host-{n % 4}")
        self.note("register", n, "boot", self.boots[n], {p.name: [*p.classes] for p in parts})
        await self.one.service.fleet.register(
            agent_id(n), RegisterSpec(f"boot-{self.boots[n]}", facts, parts, root), TESTER
        )
        self.check_there(n)

    def check_there(self, n: int) -> None:
        """What a machine has just spoken of exists, and is its own."""
        known = self.providers()
        for uuid, part in self.agent(n).parts.items():
            if part.present:
                assert uuid in known, f"part {uuid} is missing"
                assert known[uuid].agent == agent_id(n), f"part {uuid} is not managed"

    async def report(self, n: int) -> None:
        """A machine reports some of what is desired."""
        agent, random = self.agent(n), self.random
        actual = {
            uuid: {
                name: random.choice([0, held.desired // 2, held.desired, held.eligible])
                for name, held in part.classes.items()
                if held.present
            }
            for uuid, part in agent.parts.items()
            if part.present
        }
        self.note("report", n, {u[:8]: a for u, a in actual.items()})
        report = MachineReport(
            f"boot-{self.boots[n]}",
            agent.report_generation + random.choice([1, 1, 1, 0]),
            agent.desired_generation,
            random.choice([Phase.DONE, Phase.DONE, Phase.DONE, Phase.PREPARING]),
            actual,
        )
        await self.one.service.fleet.report(agent_id(n), report, TESTER)
        self.check_there(n)

    async def message(self) -> None:
        """A machine says something."""
        n, agent = self.any()
        kind = self.random.random()
        if agent.boot_id is None or kind < 0.3:
            await self.register(n)
        elif kind < 0.8:
            await self.report(n)
        else:
            boot, generation = f"boot-{self.boots[n]}", agent.report_generation
            await self.one.service.fleet.alive(agent_id(n), boot, generation)

    def any(self) -> tuple[int, Agent]:
        """Choose an agent."""
        n = self.random.choice(self.agents)
        return n, self.agent(n)

    async def operate(self) -> None:
        """An operator acts."""
        n, agent = self.any()
        fleet, random = self.one.service.fleet, self.random
        what = random.random()
        if what < 0.4:
            pair = random.choice([(p, c) for p in PARTS for c in (PAGES, LARGE)])
            goal = random.choice([None, Goal(0), Goal(10), Goal(5), Goal(percent=50)])
            self.note("desired", n, pair, goal)
            where = random.choice([None, part_id(n, pair[0])])
            await agent_desired(fleet, agent_id(n), DesiredSpec(pair[1], where, goal), "", TESTER)
        elif what < 0.5:
            await self.put(n)
        else:
            weights = [5, 8, 1, 1] if agent.policy != "expunged" else [0, 0, 0, 1]
            (action,) = random.choices([*Action], weights)
            self.note(action, n)
            force = random.random() < 0.5
            await agent_policy(fleet, agent_id(n), action, "", TESTER, force=force)

    async def group(self) -> None:
        """An operator changes the defaults of a group."""
        defaults = {
            name: self.random.choice([Goal(0), Goal(8), Goal(percent=100)])
            for name in (PAGES, LARGE)
            if self.random.random() < 0.6
        }
        name = self.random.choice(["default", "rack"])
        self.note("group", name, defaults)
        await self.one.service.fleet.group_defaults.put(name, defaults, TESTER)

    async def succeed(self) -> None:
        """Another agent speaks for the machine of one that has ended."""
        ended = [n for n in self.agents if self.agent(n).state is State.DECOMMISSIONED]
        if ended:
            old = self.random.choice(ended)
            self.agents.remove(old)
            self.agents.append(new := max(self.agents) + 4)
            self.boots[new] = 0
            self.note("agent", new, "after", old)
            await self.put(new)
            await self.register(new)

    async def pass_time(self) -> None:
        """Nobody is heard of for some time."""
        for _ in range(self.random.choice([3, 12, 40])):
            self.clock.at += SECOND
            await self.one.service.fleet.liveness_loop.look()

    # Clients.

    async def tree(self) -> None:
        """A provider is deleted, created or moved."""
        random, known = self.random, self.providers()
        uuid = random.choice(self.uuids())
        parent = random.choice([None, None, *known])
        if random.random() < 0.3:
            top = random.choice(self.roots())
            await self.remove(top)
            if random.random() < 0.7:
                again = cases.ProviderCreate(top, f"again-{random.random()}", parent)
                await self.one.submit(again)
            return
        if uuid not in known:
            self.note("create", uuid, "below", parent)
            await self.one.submit(cases.ProviderCreate(uuid, f"made-{random.random()}", parent))
        elif random.random() < 0.6:
            self.note("delete", uuid)
            await self.one.submit(cases.ProviderDelete(uuid))
        else:
            name = random.choice([known[uuid].name, f"renamed-{random.random()}"])
            self.note("move", uuid, "below", parent, name)
            await self.one.submit(
                cases.ProviderUpdate(uuid, name, move=True, parent=parent, free=True)
            )

    async def remove(self, top: ProviderId) -> None:
        """A provider is deleted with all below it, as far as they are not used."""
        self.note("remove", top)
        for uuid, provider in self.providers().items():
            if provider.parent == top:
                await self.remove(uuid)
        await self.one.submit(cases.ProviderDelete(top))

    def specs(self) -> dict[str, InventorySpec]:
        """Return random inventories."""
        return {
            name: InventorySpec(self.random.choice([1, 5, 10, 30]), self.random.choice([0, 0, 1]))
            for name in CLASSES
            if self.random.random() < 0.5
        }

    async def write(self) -> None:
        """Inventories of a provider are written."""
        random, known = self.random, self.providers()
        uuid = random.choice([*known])
        generation = known[uuid].generation
        if random.random() < 0.2:
            self.note("delete inventories of", uuid)
            await self.one.submit(cases.InventoriesDelete(uuid))
        else:
            specs = self.specs()
            self.note("inventories of", uuid, {n: s.total for n, s in specs.items()})
            await self.one.submit(cases.InventoriesReplace(uuid, generation, specs))

    async def bulk(self) -> None:
        """Providers are written in bulk."""
        random, known = self.random, self.providers()
        uuids = random.sample(self.uuids(), 3)
        specs = [
            ProviderSpec(uuid, f"bulk-{uuid}", random.choice([None, *known]), self.specs())
            for uuid in uuids
        ]
        self.note("bulk", [(s.uuid, s.parent) for s in specs])
        service = self.one.service
        pieces = Pieces(service.turns)
        await providers_upsert(service.index, service.transactor, pieces, TESTER, specs, True)

    def request(self, consumer: ConsumerId, pairs: list[Pair]) -> ConsumerRequest:
        """Return what a consumer asks for: some of these classes."""
        amounts: dict[ProviderId, dict[str, int]] = {}
        for uuid, name in pairs:
            amounts.setdefault(uuid, {})[name] = self.random.choice([1, 2, 5])
        return ConsumerRequest(consumer, amounts, "project", "user", "INSTANCE")

    async def allocate(self) -> None:
        """A consumer claims, grows, moves or goes."""
        random, pairs = self.random, [*self.inventories()]
        consumer = random.choice(self.consumers)
        if not pairs or random.random() < 0.25:
            await self.one.submit(AllocationsDelete(consumer))
            return
        request = self.request(consumer, random.sample(pairs, min(len(pairs), 2)))
        self.note("allocate", consumer, request.allocations)
        await self.one.submit(AllocationsReplace([request]))

    async def reshape(self) -> None:
        """Inventories and allocations of two providers are rewritten at once."""
        random, known = self.random, self.providers()
        uuids = random.sample([*known], min(2, len(known)))
        written = {uuid: (known[uuid].generation, self.specs()) for uuid in uuids}
        pairs = [(uuid, name) for uuid, (_, specs) in written.items() for name in specs]
        requests = [
            self.request(consumer, random.sample(pairs, min(len(pairs), 2)))
            for consumer in random.sample(self.consumers, random.choice([0, 1, 3]))
        ]
        self.note("reshape", {u: [*s] for u, (_, s) in written.items()}, len(requests))
        await self.one.submit(Reshape(written, requests))
