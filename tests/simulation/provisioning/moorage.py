"""Moorage in memory: the real service and rules of admission, without sockets, disk and threads.

Requests of one batch are decided together, as by the transactor. A process of it may die before or
after a commit; then its clients get no answer.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from moorage.core.admission import requests
from moorage.core.admission.admit import TicketsNeeded, admit
from moorage.core.admission.facts import Changes, Keys
from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.model import Lease
from moorage.core.admission.pools import not_found
from moorage.core.admission.requests import Proof
from moorage.core.admission.units import figures_of
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.faces.v1.admission.leases import lease_shown, record_text, request_of
from moorage.faces.v1.admission.pools import pool_shown
from moorage.faces.v1.problems import STATUSES
from moorage.service.admission.confirmations import Confirmations
from moorage.service.admission.lease_cases import (
    LeaseAcquire,
    LeaseOutcome,
    LeaseRecord,
    LeaseRelease,
    LeaseRenew,
    LeaseRetry,
    Sweep,
)
from moorage.service.admission.pool_cases import PoolPut
from moorage.service.admission.pool_specs import spec_of
from moorage.service.admission.service import Admission
from moorage.service.admission.views import LeaseView, PoolView
from moorage.service.admission.waiters import Waiters
from moorage.service.audit_entries import Actor
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.world import World
from moorage.wire import admission as wire
from tests.simulation.admission.memory import Memory
from tests.simulation.virtual.loop import Process, passed

OWNER = "governor:hosts"
GOVERNOR = Actor("gate", None, "governor")
OPERATOR = Actor("operator", None, "operator")
START = 1_800_000_000 * SECOND
BATCH_MAX = 8


class Hands:
    """The clock of a process: that of the loop."""

    def monotonic(self) -> int:
        return round(asyncio.get_running_loop().time() * SECOND)

    def now(self) -> Instant:
        return Instant(START + self.monotonic())


class Queries:
    """What the service reads."""

    def __init__(self, memory: Memory, clock: ServiceClock) -> None:
        self._memory, self._clock = memory, clock

    def view(self, lease: Lease, asking: bool) -> LeaseView:
        """Return the view of a lease now."""
        when = self._clock.estimate(self._memory.timeline)
        waits = asking and lease.state == "waiting"
        return LeaseView(lease, when, self._standing(lease) if waits else None)

    def pool(self, name: str) -> PoolView:
        """Return a pool. Raises POOL_NOT_FOUND."""
        found = self._memory.pools.get(name)
        if found is None:
            raise not_found(name)
        at = self._clock.estimate(self._memory.timeline).moment.at
        figures = figures_of(found, (), at)
        return PoolView(found, {}, figures, 0, None, None)

    async def lease(self, lease: LeaseId, *, asking: bool = False) -> LeaseView:
        """Return a lease. Raises LEASE_NOT_FOUND."""
        found = self._memory.find(lease)
        if found is None:
            raise Error(Code.LEASE_NOT_FOUND, requests.unknown_message(lease))
        return self.view(found, True)

    async def standing(self, lease: Lease, *, asking: bool = False) -> Standing | None:
        """Return the place of a ticket."""
        return self._standing(lease)

    def _standing(self, lease: Lease) -> Standing | None:
        lines = [line for line in self._memory.lines.values() if lease.id in line]
        places = [line.index(lease.id) + 1 for line in lines]
        return Standing(max(places, default=1), None, "full", "all units are in use")


class Service(Admission):
    """The real service of admission for one process, on a memory that outlives it."""

    def __init__(self, memory: Memory, world: "Moorage") -> None:
        self._memory, self._world = memory, world
        clock = ServiceClock(Hands(), alone=True)
        self._service_clock = self.clock = clock
        self._engine: Any = SimpleNamespace(shared=False)
        self._transactor: Any = self
        self.queries: Any = Queries(memory, clock)
        self.waiting = Waiters()
        self.confirmations = Confirmations(self._transactor, shared=False)
        self._queue: list[tuple[Any, asyncio.Future[Any]]] = []

    async def submit(self, case: Any) -> Any:
        """Decide a case in the next batch."""
        if isinstance(case, LeaseAcquire):  # ids are random: they come from the seed
            case.request = structs.replace(case.request, id=self._world.new_id())
        if isinstance(case, LeaseRetry):
            case.fresh = self._world.new_id()
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._queue.append((case, answer))
        if len(self._queue) == 1:
            pause = self._world.random.choice([0.0, 0.001, 0.03])
            loop.call_later(pause, self._work, context=self._world.process.context)
        return await answer

    def _work(self) -> None:
        if self._world.service is not self:
            return
        taken, self._queue = self._queue[:BATCH_MAX], self._queue[BATCH_MAX:]
        outcomes, changes, timeline, when = self.decide([case for case, _ in taken])
        if self._world.dies("before the commit"):
            return
        self._memory.timeline = timeline
        changes.stamp(self._memory.epoch, self._memory.revision + 1)
        self._world.followed(changes)
        self._memory.save(changes)
        self.waiting.note(changes, when)
        if self._world.dies("after the commit"):
            return
        for (case, answer), outcome in zip(taken, outcomes, strict=True):
            if answer.done():
                continue
            if isinstance(outcome, Error):
                answer.set_exception(outcome)
            else:
                answer.set_result(case.conclude(self._stored(), when))
        if self._queue:
            asyncio.get_running_loop().call_soon(self._work)

    def _stored(self) -> Any:
        memory = self._memory
        leases = {**memory.ended, **memory.leases}
        return SimpleNamespace(admission=SimpleNamespace(leases=leases, pools=memory.pools))

    def decide(self, cases: list[Any]) -> tuple[list[Any], Changes, Any, When]:
        """Decide a batch; nothing is kept yet."""
        keys = Keys()
        for case in cases:
            keys.update(case.keys().admission)
        facts, hands = self._memory.load(keys), Hands()
        timeline, moment = self.clock.read(self._memory.timeline, hands.now(), hands.monotonic())
        facts.timeline = timeline
        when, changes = When(moment, hands.now()), Changes()
        world = World(LedgerFacts(frozenset(), frozenset()), facts, timeline=timeline)
        outcomes: list[Any] = []
        for case in cases:
            try:
                made = case.decide(world, when).admission or Changes()
            except Error as error:
                outcomes.append(error)
                continue
            facts.apply(made)
            changes.update(made)
            outcomes.append(None)
        while True:
            try:
                made = admit(facts, moment, when.wall, None, frozenset(changes.polled))
            except Restart as short:
                assert isinstance(short.needs, TicketsNeeded)
                self._memory.load_more(facts, short.needs.lines)
            else:
                changes.update(made)
                return outcomes, changes, timeline, when


Gone = Callable[[], Awaitable[None]]
POOLS = "/v1/pools/"
ONE = re.compile(r"/v1/leases/([^/]+)(?:/(\w+))?")


async def answered(
    service: Service, method: str, path: str, query: Mapping[str, Any], body: Any, gone: Gone
) -> tuple[int, Any]:
    """Answer a request of the native API, as its face does; return status and what is sent.

    Answers are not encoded, which would take a quarter of all time; errors are JSON.
    """
    try:
        return 200, await _routed(service, method, path, query, body, gone)
    except Error as error:
        return STATUSES[error.code], {"code": error.code, "detail": str(error)}


async def _routed(
    service: Service, method: str, path: str, query: Mapping[str, Any], body: Any, gone: Gone
) -> Any:
    wait, version = float(query.get("wait") or 0.0), query.get("record_version")
    if path == "/v1/leases" and method == "POST":
        needs = [wire.NeedWanted(**need) for need in body["needs"]]
        asked = request_of(wire.LeaseWanted(**{**body, "needs": needs}), OWNER)
        return lease_shown(await service.acquire(asked, GOVERNOR, wait, gone), mine=True)
    if path == "/v1/leases":
        return _page(service, query)
    if path.startswith(POOLS):
        return pool_shown(service.queries.pool(path.removeprefix(POOLS)))
    found = ONE.fullmatch(path)
    assert found is not None, path
    lease, proof = LeaseId(found[1]), Proof(OWNER)
    match method, found[2]:
        case "GET", None:
            seen = await service.queries.lease(lease)
            if seen.lease.state == "waiting":
                seen = await service.waited(lease, wait, gone, scan=seen.lease.pull)
            return lease_shown(seen, mine=True)
        case "DELETE", None:
            view = await service.change(LeaseRelease(lease, proof, version=version))
        case "PUT", "record":
            text = record_text(body["record"])
            view = await service.change(LeaseRecord(lease, proof, text, body["version"]))
        case "POST", "renew":
            view = await service.change(LeaseRenew(lease, proof))
        case "POST", "outcome":
            view = await service.change(LeaseOutcome(lease, proof, body["result"], body["detail"]))
        case "POST", "retry":
            how = {"requeue": body["requeue"], "version": body["record_version"]}
            view = await service.change(
                LeaseRetry(lease, OWNER, proof, body["key"], GOVERNOR, **how)
            )
        case _:
            raise AssertionError(method, path)
    return lease_shown(view, mine=True)


def _page(service: Service, query: Mapping[str, Any]) -> wire.LeasePage:
    memory, prefix = service._memory, str(query.get("key_prefix", ""))
    where = memory.ended if query["state"] == "ended" else memory.leases
    found = [
        lease
        for lease in where.values()
        if lease.state == query["state"] and lease.key.startswith(prefix)
    ]
    found.sort(key=lambda lease: lease.arrival)
    views = [service.queries.view(lease, True) for lease in found]
    return wire.LeasePage(leases=[lease_shown(view, mine=True) for view in views], next=None)


class Moorage:
    """The service over its processes. `service` None: it is away."""

    def __init__(self, world: Any, followed: Callable[[Changes], None]) -> None:
        self._world = world
        self.random = world.random
        self.memory = Memory(page=self.random.choice([1, 2, 5]))
        self.followed = followed
        self.process = Process("moorage")
        self.service: Service | None = None

    def start(self) -> None:
        """Start a process."""
        self.process = Process("moorage")
        self.service = Service(self.memory, self)
        self.process.start(self._sweeps(self.service))

    def stop(self) -> None:
        """End the process; requests that it has are lost, time goes on without it."""
        self.service = None
        self.process.kill()

    async def change(self, name: str, wanted: wire.PoolWanted) -> None:
        """Make or change a pool as an operator; nothing happens if Moorage is away."""
        if self.service is not None:
            case = PoolPut(name=name, by=OPERATOR, spec=spec_of(wanted), generation=None)
            await self.service.submit(case)

    async def _sweeps(self, service: Service) -> None:
        """Sweep when something is due, and every five seconds to show that it is alive."""
        for second in count():
            await passed(1.0)
            due, now = self.memory.next_due(), service.clock.estimate(self.memory.timeline)
            if second % 5 == 0 or (due is not None and due <= now.moment.at):
                await service.submit(Sweep(due=now.moment.at))

    def new_id(self) -> LeaseId:
        """Return an id from the seed."""
        return LeaseId(f"{self.random.getrandbits(64):016x}")

    def dies(self, where: str) -> bool:
        """Let the process die here, or not."""
        return bool(self._world.moorage_dies(where))
