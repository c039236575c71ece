"""Groups of reporters in memory: the real service and rules, without sockets, disk and threads.

Requests of one batch are decided together, as by the transactor. A process of it may die before or
after a commit; then its clients get no answer.
"""

import asyncio
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.fleet.facts import Facts as FleetFacts
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.model import NO_TAGS, ProviderRecord
from moorage.core.service_time import Timeline, When
from moorage.faces.v1.fleet import reporters as faces
from moorage.faces.v1.problems import STATUSES
from moorage.service.audit_entries import Actor
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.world import Changes, World
from moorage.service.fleet.reporters import Reporters
from moorage.store.fleet.reads import Shared
from moorage.wire import reporting as wire
from tests.simulation.virtual.loop import Process, passed

START = 1_800_000_000 * SECOND
BATCH_MAX = 4
GROUP = "ironic"
REPORTER = Actor("reporter", None, "reporter")
OPERATOR = Actor("operator", None, "operator")
STANDARD = frozenset({"VCPU"})


@dataclass
class Memory:
    """All rows, as committed."""

    timeline: Timeline = field(default_factory=Timeline)
    ledger: LedgerFacts = field(default_factory=lambda: LedgerFacts(STANDARD, frozenset()))
    fleet: FleetFacts = field(default_factory=lambda: FleetFacts(epoch=1))
    revision: int = 0

    def copied(self) -> tuple[LedgerFacts, FleetFacts]:
        """Return all rows, for a batch that may not be committed."""
        ledger, fleet = copy(self.ledger), copy(self.fleet)
        for facts in (ledger, fleet):
            for name in facts.__slots__:
                value = getattr(facts, name)
                if isinstance(value, dict | set):
                    setattr(facts, name, copy(value))
        ledger.inventories = {uuid: {**held} for uuid, held in ledger.inventories.items()}
        ledger.children = {uuid: {*below} for uuid, below in ledger.children.items()}
        return ledger, fleet


class Hands:
    """The clock of a process: that of the loop; somebody may have set the wall clock."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def monotonic(self) -> int:
        return round(asyncio.get_running_loop().time() * SECOND)

    def now(self) -> Instant:
        return Instant(START + self.monotonic() + self._world.jump)


class Index:
    """The committed rows as of the last look, as in the index of a process."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.catalog: Any = self

    async def current(self) -> None:
        """Look."""
        self._ledger, _ = self._memory.copied()

    def record(self, uuid: ProviderId) -> ProviderRecord | None:
        """Return a provider."""
        provider = self._ledger.providers.get(uuid)
        if provider is None:
            return None
        tags = self._ledger.tags.get(uuid, NO_TAGS)
        return ProviderRecord(provider, self._ledger.inventories_of(uuid), tags, 0)

    def has_class(self, name: str) -> bool:
        """Is there such a class?"""
        return self._ledger.has_class(name)

    def has_trait(self, name: str) -> bool:
        """Is there such a trait?"""
        return self._ledger.has_trait(name)

    def has_aggregate(self, uuid: str) -> bool:
        """Is anything in this aggregate?"""
        return any(uuid in tags.aggregates for tags in self._ledger.tags.values())


class Turns:
    """Long work is not interrupted, as everything is short."""

    def __init__(self) -> None:
        self.unit = asyncio.Lock()

    async def spared(self) -> None:
        """Go on at once."""


class Service(Reporters):
    """The real service of reporters for one process, on a memory that outlives it."""

    def __init__(self, memory: Memory, world: "Moorage") -> None:
        clock = Hands(world)
        self.clock = ServiceClock(clock, alone=True)
        nothing: Any = None
        myself: Any = self
        index: Any = Index(memory)
        turns: Any = Turns()
        super().__init__(nothing, myself, index, self.clock, clock, turns)
        self._memory, self._world, self._hands = memory, world, clock
        self.turns = turns
        self._queue: list[tuple[Any, asyncio.Future[Any]]] = []

    async def submit(self, case: Any) -> Any:
        """Decide a case in one of the next batches."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._queue.append((case, answer))
        if len(self._queue) == 1:
            pause = self._world.random.choice([0.0, 0.001, 0.03, 0.03, 1.0])
            loop.call_later(pause, self._work, context=self._world.process.context)
        return await answer

    async def beat(self) -> None:
        """Show that the process is alive, as its chores do."""
        done = asyncio.get_running_loop().create_future()
        self._queue.append((None, done))
        self._work()

    def _work(self) -> None:
        if self._world.service is not self:
            return
        taken, self._queue = self._queue[:BATCH_MAX], self._queue[BATCH_MAX:]
        memory, hands = self._memory, self._hands
        asked = hands.monotonic()
        timeline, moment = self.clock.read(memory.timeline, hands.now(), asked)
        when = When(moment, hands.now(), hands.now())
        ledger, fleet = memory.copied()
        world = World(ledger, fleet=fleet, timeline=timeline)
        outcomes = [self._decided(case, world, when) for case, _ in taken]
        if self._world.dies("before the commit"):
            return
        before, memory.timeline = memory.ledger, timeline
        memory.ledger, memory.fleet = ledger, fleet
        memory.revision += 1
        self._world.committed(before, [case for case, _ in taken], outcomes)
        if self._world.dies("after the commit"):
            return
        for (case, answer), outcome in zip(taken, outcomes, strict=True):
            if answer.done() or case is None:
                continue
            try:
                if isinstance(outcome, Error):
                    raise outcome
                answer.set_result(case.conclude(world, when))
            except Error as error:
                answer.set_exception(error)
        if self._queue:
            asyncio.get_running_loop().call_soon(self._work)

    def _decided(self, case: Any, world: World, when: When) -> Changes | Error:
        if case is None:
            return Changes()
        try:
            made: Changes = case.decide(world, when)
        except Error as error:
            return error
        if made.ledger is not None:
            world.ledger.apply(made.ledger)
        if made.fleet is not None:
            world.fleet.apply(made.fleet)
        return made

    async def _shared(self, group: str, nodes: Collection[ProviderId] = ()) -> Shared:
        await passed(self._world.random.choice([0.0, 0.002]))
        fleet = self._memory.fleet
        return Shared(
            self._memory.timeline,
            fleet.reporter_groups.get(group),
            [one for (name, _), one in fleet.members.items() if name == group],
            {node: fleet.pins[group, node] for node in nodes if (group, node) in fleet.pins},
        )


async def answered(
    service: Service, method: str, path: str, query: dict[str, Any], body: Any
) -> tuple[int, Any]:
    """Answer a request of the native API by its handler; return status and what is sent."""
    request: Any = SimpleNamespace(
        service=SimpleNamespace(reporters=service, transactor=service, turns=service.turns),
        caller=SimpleNamespace(scope=None),
        actor=REPORTER,
        body=body,
    )
    try:
        return 200, await _routed(request, method, path, query)
    except Error as error:
        return STATUSES[error.code], {"code": error.code, "detail": str(error)}


async def _routed(request: Any, method: str, path: str, query: dict[str, Any]) -> Any:
    if path == "/v1/reports":
        request.body = msgspec.json.encode(request.body)
        return await faces.send(request)
    parts = path.split("/")[3:]
    request.variables = {"name": parts[0], "member": parts[-1]}
    memory = request.service.reporters._memory
    match method, parts[1]:
        case "PUT", "members":
            return await faces.join(request)
        case "DELETE", "members":
            request.parameters = wire.LeaveAsked(instance=query["instance"])
            return await faces.leave(request)
        case "GET", "pins":
            pins = [
                wire.Pin(node=node, member=name) for (_, node), name in memory.fleet.pins.items()
            ]
            return wire.PinPage(pins=pins, next=None)
        case "GET", "nodes":
            said = {uuid: one.reported_by(GROUP) for uuid, one in memory.ledger.tags.items()}
            owned = [
                wire.NodeOwned(uuid=uuid, ghost=one.ghost)
                for uuid, one in said.items()
                if one.owned or one.ghost
            ]
            return wire.NodePage(nodes=owned, next=None)
    raise AssertionError(method, path)


class Moorage:
    """The service over its processes. `service` None: it is away."""

    def __init__(self, world: Any, committed: Callable[..., None]) -> None:
        self._world = world
        self.random = world.random
        self.memory = Memory()
        self.committed = committed
        self.process = Process("moorage")
        self.service: Service | None = None

    @property
    def jump(self) -> int:
        """How far the wall clock is ahead, in microseconds."""
        return int(self._world.jump)

    def start(self) -> None:
        """Start a process."""
        self.process = Process("moorage")
        self.service = Service(self.memory, self)
        self.process.start(self._beats(self.service))
        self._world.auditor.outage_ended()

    def stop(self) -> None:
        """End the process; requests that it has are lost, time goes on without it."""
        self.service = None
        self.process.kill()
        self._world.auditor.outage_began()

    async def _beats(self, service: Service) -> None:
        while True:
            await service.beat()
            await passed(5.0)

    def dies(self, where: str) -> bool:
        """Let the process die here, or not."""
        return bool(self._world.moorage_dies(where))
