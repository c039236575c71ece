"""A service on a real database whose engine can be observed, held up and made to fail."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.chores import RETENTION_BY_DEFAULT, Retention
from moorage.service.ledger import allocation_cases, provider_cases
from moorage.store.api import Engine, Plan, Statement, Transaction
from moorage.store.open import open_engine

T = TypeVar("T")

CLASSES = frozenset({"VCPU", "DISK_GB"})
TRAITS = frozenset({"STORAGE_DISK_SSD"})
TESTER = Actor("tester", None, "test")


def fatal(error: Exception) -> None:
    """Fail the test: a service that gets this as `on_fatal` must never call it."""
    raise AssertionError("it is unknown whether a commit is durable") from error


class ManualClock:
    """A clock that moves only when a test moves it, also backwards. `at` is in microseconds."""

    def __init__(self, at: int = 1_700_000_000_000_000) -> None:
        self.at = at
        self.jump = 0
        """By how many microseconds the wall clock has been set forward."""

    def now(self) -> Instant:
        return Instant(self.at + self.jump)

    def monotonic(self) -> int:
        return self.at


class Watched:
    """A real engine that counts transactions and whose commits can be held up or made to fail."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name, self.shared = engine.name, engine.shared
        self.transactions = 0
        self.reads = 0
        self.statements: list[int] = []
        """The number of statements of each transaction."""
        self.failures: deque[Exception] = deque()
        """What the next commits raise instead of committing; the transaction is rolled back."""
        self.wrapper: type[WatchedTransaction] = WatchedTransaction
        """The wrapper of transactions; a test may replace it to observe more of them."""
        self.held = asyncio.Event()
        """Set when a commit is being held up."""
        self._go = asyncio.Event()
        self._go.set()

    def hold_commits(self) -> None:
        """Hold up commits from now on."""
        self._go.clear()

    def continue_commits(self) -> None:
        """Let commits continue."""
        self.held.clear()
        self._go.set()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Begin a transaction of the real engine."""
        self.transactions += 1
        self.statements.append(0)
        async with self.engine.transaction() as transaction:
            yield self.wrapper(self, transaction)

    async def read(self, plan: Plan[T]) -> T:
        self.reads += 1
        return await self.engine.read(plan)

    async def look(self, plan: Plan[T]) -> T:
        return await self.engine.look(plan)

    async def read_aside(self, plan: Plan[T], *, slow: bool = False) -> T:
        return await self.engine.read_aside(plan, slow=slow)

    async def woken(self, seconds_max: float) -> None:
        await self.engine.woken(seconds_max)

    def seen(self, epoch: int, revision: int, at: int | None) -> None:
        self.engine.seen(epoch, revision, at)

    async def history_checked(self) -> None:
        await self.engine.history_checked()

    async def backup(self, path: str) -> None:
        await self.engine.backup(path)

    async def close(self) -> None:
        await self.engine.close()

    async def before_commit(self) -> None:
        """Wait while commits are held up, then raise the next planned failure."""
        if not self._go.is_set():
            self.held.set()
            await self._go.wait()
        if self.failures:
            raise self.failures.popleft()


class WatchedTransaction:
    """A transaction of a `Watched` engine."""

    def __init__(self, engine: Watched, transaction: Transaction) -> None:
        self._engine = engine
        self._transaction = transaction

    @property
    def now(self) -> Instant | None:
        return self._transaction.now

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        return await self._transaction.run(self._counted(plan), aside=aside)

    async def commit(self) -> None:
        await self._engine.before_commit()
        await self._transaction.commit()

    def _counted(self, plan: Plan[T]) -> Plan[T]:
        try:
            statements: Any = next(plan)
            while True:
                asked: list[Statement] = list(statements)
                self._engine.statements[-1] += len(asked)
                statements = plan.send((yield asked))
        except StopIteration as stop:
            answer: T = stop.value
            return answer


class Running:
    """A running service with its engine and clock, for a test to control."""

    def __init__(self, service: Service, engine: Watched, clock: ManualClock) -> None:
        self.service = service
        self.engine = engine
        self.clock = clock
        self.fatal: list[Exception] = []

    async def submit(self, command: Any) -> Any:
        """Execute one command."""
        return await self.service.transactor.submit(command)

    async def outcomes(self, *commands: Any) -> list[Any]:
        """Execute commands at the same time; a refusal is returned as its code."""
        answers = await asyncio.gather(*map(self.submit, commands), return_exceptions=True)
        return [answer.code if isinstance(answer, Error) else answer for answer in answers]

    async def provider(self, n: int, **totals: int) -> ProviderId:
        """Create the n-th provider with these inventories."""
        uuid = provider_id(n)
        await self.submit(provider_cases.ProviderCreate(uuid, f"name-{n}"))
        specs = {name: InventorySpec(total) for name, total in totals.items()}
        await self.submit(provider_cases.InventoriesReplace(uuid, 0, specs))
        return uuid

    def used(self, uuid: ProviderId, name: str = "VCPU") -> int:
        """Return the used amount according to the index."""
        record = self.service.index.catalog.record(uuid)
        assert record is not None
        return record.inventories[name].used


@asynccontextmanager
async def running(
    path: Path,
    *,
    queue_max: int = 10_000,
    vfs: str = "",
    clock: ManualClock | None = None,
    retention: Retention = RETENTION_BY_DEFAULT,
) -> AsyncIterator[Running]:
    """Start a service on `path`; its own check must find nothing at the end, unless it failed."""
    clock = clock or ManualClock()
    engine = Watched(open_engine(f"sqlite:///{path}", vfs=vfs or None))
    fatal: list[Exception] = []
    service = await Service.start(
        engine,
        clock,
        CLASSES,
        TRAITS,
        on_fatal=fatal.append,
        queue_max=queue_max,
        retention=retention,
    )
    one = Running(service, engine, clock)
    one.fatal = fatal
    try:
        yield one
        if not fatal and not engine.failures:
            assert (found := await service.operations.check()) == [], found
    finally:
        await service.stop()


def provider_id(n: int) -> ProviderId:
    """Return the n-th provider's UUID."""
    return ProviderId(f"{n:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa")


def consumer_id(n: int) -> ConsumerId:
    """Return the n-th consumer's UUID."""
    return ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc")


def claim(
    n: int, *providers: ProviderId, generation: int | None = None, **amounts: int
) -> allocation_cases.AllocationsReplace:
    """A claim of these amounts on each of the providers for the n-th consumer."""
    wish = {uuid: dict(amounts) for uuid in providers}
    return allocation_cases.AllocationsReplace(
        [ConsumerRequest(consumer_id(n), wish, "project", "user", "INSTANCE", generation)]
    )
