"""The batch is the transaction: load, decide, save, commit, and only then index and answers.

The one place that begins and commits. Requests queue here; up to `BATCH_MAX` of them share one
load, one save and one COMMIT. A refused request has changed nothing, so no savepoints are needed.
Nothing is acknowledged before it is durable, refusals included: they may rest on what an earlier
request of the same batch took.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moorage.core.clock import Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.ledger.claims import SearchAgain
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.service.claims import Claim, offers_make
from moorage.service.index import Index
from moorage.service.ledger import UseCase
from moorage.service.turns import Turns
from moorage.store import audit as audit_store
from moorage.store import ledger as ledger_store
from moorage.store.api import Conflict, Engine, Fatal, Plan, StoreError, Transaction, Unavailable
from moorage.store.audit import AuditRow

T = TypeVar("T")

BATCH_MAX = 64
"""Requests in one batch."""

BATCH_KEYS_MAX = 2_000
"""Rows that the requests of one batch may ask for together; a larger request runs by itself."""

RETRIES_MAX = 5
"""How often a batch is loaded and decided again after somebody else was faster."""

SEARCHES_MAX = 2 * BATCH_MAX
"""How often a claim is searched for. The first of a batch finds what nobody can take before it, so
within one process a claim waits for its turn at most; others may be faster again and again."""

log = logging.getLogger("moorage.transactor")


@dataclass(slots=True)
class _Item:
    """One waiting request: a use case, or a plan of another room that runs by itself."""

    future: asyncio.Future[Any]
    use_case: UseCase[Any] | None = None
    plan: Callable[[], Plan[Any]] | None = None
    keys: Keys = field(default_factory=Keys)
    refusal: Exception | None = None
    answer: Any = None
    searches: int = 0
    again: bool = False
    """It is to be searched for again, in the next batch."""

    @property
    def alone(self) -> bool:
        return self.use_case is None or self.use_case.alone

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the audit rows of what was decided, none if it was refused."""
        return self.use_case.audit(now) if self.use_case and self.refusal is None else []

    def settle(self) -> None:
        """Tell the caller, unless it has gone away."""
        if self.future.done():
            return
        if self.refusal is not None:
            self.future.set_exception(self.refusal)
        else:
            self.future.set_result(self.answer)

    def fail(self, error: Exception) -> None:
        """Tell the caller that nothing was kept."""
        self.refusal = error
        self.settle()


@dataclass(slots=True)
class Counters:
    """What the transactor has done since it started; for metrics."""

    batches: int = 0
    requests: int = 0
    refused: int = 0
    retries: int = 0
    failed: int = 0
    overloaded: int = 0


class _Fault(Exception):
    """Loading or saving met an unforeseen error before anything was committed; the cause says."""


class Transactor:
    """Takes requests from the queue, batch after batch.

    `on_fatal` is called when a commit may or may not be durable; it should end the process.
    """

    def __init__(
        self,
        engine: Engine,
        index: Index,
        clock: Clock,
        turns: Turns,
        *,
        queue_max: int = 10_000,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        self._engine = engine
        self._index = index
        self._clock = clock
        self._turns = turns
        self._queue_max = queue_max
        self._on_fatal = on_fatal
        self._queue: deque[_Item] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._last = Instant(0)
        self._closed = False
        self._fatal: Error | None = None
        self.counters = Counters()

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def start(self) -> None:
        """Begin to work; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Take nothing more, finish what was accepted, end."""
        self._closed = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def submit(self, use_case: UseCase[T]) -> T:
        """Carry out a use case; returns when it is durable.

        Raises `Error`: the refusal of its decision, OVERLOADED when the queue is full,
        UNAVAILABLE when the database cannot take it. In every case nothing was applied.
        """
        keys = use_case.keys()
        answer: T = await self._enqueue(
            _Item(asyncio.get_running_loop().create_future(), use_case, keys=keys)
        )
        return answer

    async def run_alone(self, plan: Callable[[], Plan[T]]) -> T:
        """Run a rare plan in a transaction of its own, in turn with the batches.

        `plan` makes the plan, anew for every try. Raises `Error` as `submit` does.
        """
        answer: T = await self._enqueue(
            _Item(asyncio.get_running_loop().create_future(), plan=plan)
        )
        return answer

    async def _enqueue(self, item: _Item) -> Any:
        if self._closed:
            raise Error(Code.UNAVAILABLE, "The service is shutting down; try again elsewhere.")
        if len(self._queue) >= self._queue_max:
            self.counters.overloaded += 1
            raise Error(
                Code.OVERLOADED,
                f"{self._queue_max} requests are waiting already (setting queue_max); try later.",
            )
        self._queue.append(item)
        self._wake.set()
        return await item.future

    async def _work(self) -> None:
        while True:
            if not self._queue:
                if self._closed:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            batch = self._take()
            if batch:
                with self._turns.urgent():
                    await self._carry_out(batch)

    def _take(self) -> list[_Item]:
        batch: list[_Item] = []
        rows = 0
        while self._queue and len(batch) < BATCH_MAX:
            item = self._queue[0]
            rows += len(item.keys)
            if batch and (item.alone or batch[-1].alone or rows > BATCH_KEYS_MAX):
                break
            self._queue.popleft()
            if not item.future.done():
                batch.append(item)
        return batch

    async def _carry_out(self, batch: list[_Item]) -> None:
        """Bring a batch to its end: retried when others were faster, then item by item."""
        last: Exception = Conflict("the rows kept changing")
        for _ in range(RETRIES_MAX):
            try:
                await self._attempt(batch)
            except Conflict:
                self.counters.retries += 1
                continue
            except _Fault as fault:
                last = fault.__cause__ if isinstance(fault.__cause__, Exception) else fault
                break
            except Exception as error:
                self._failed(batch, error)
                return
            self._settle(batch)
            return
        if len(batch) == 1:
            self._failed(batch, last)
            return
        for item in batch:
            if self._fatal is None:
                await self._carry_out([item])
            else:
                item.fail(self._fatal)

    def _settle(self, batch: list[_Item]) -> None:
        """Answer those that are decided; whoever must be searched for again is next."""
        for item in batch:
            if not item.again:
                item.settle()
        self._queue.extendleft(item for item in reversed(batch) if item.again)

    async def _search(self, batch: list[_Item]) -> None:
        """Find what the claims of a batch may choose from, and put them first.

        All that is in a batch came at the same time, so any order is right; in this one nothing
        that a claim has found can change before it, except that other claims take it.
        """
        claims = [item.use_case for item in batch if isinstance(item.use_case, Claim)]
        if not claims:
            return
        try:
            fleet = await self._index.current()
        except Error as error:
            raise Unavailable(error.message) from error
        offers_make(claims, fleet)
        for item in batch:
            if isinstance(item.use_case, Claim):
                item.keys = item.use_case.keys()
        batch.sort(key=lambda item: not isinstance(item.use_case, Claim))

    async def _attempt(self, batch: list[_Item]) -> None:
        try:
            await self._search(batch)
        except StoreError:
            raise
        except Exception as error:
            raise _Fault from error
        async with self._engine.transaction() as transaction:
            plan = batch[0].plan
            if plan is not None:
                batch[0].answer = await transaction.run(plan())
                await transaction.commit()
                return
            try:
                changes, revision = await self._decide(batch, transaction)
            except StoreError:
                raise
            except Exception as error:
                raise _Fault from error
            if revision is not None:
                await transaction.commit()
        if revision is not None:
            self._index.apply(revision, changes)
        self.counters.batches += 1
        self.counters.requests += sum(not item.again for item in batch)
        self.counters.refused += sum(item.refusal is not None for item in batch)

    async def _decide(
        self, batch: list[_Item], transaction: Transaction
    ) -> tuple[Changes, int | None]:
        """Load, decide in turn and save; the revision is None when nothing changed."""
        keys = batch[0].keys
        if len(batch) > 1:
            keys = Keys()
            for item in batch:
                keys.update(item.keys)
        facts = await transaction.run(
            ledger_store.facts_load(
                keys, self._index.fleet.standard_classes, self._index.fleet.standard_traits
            )
        )
        now = self._now(transaction.now)
        before = ledger_store.before_of(facts)
        changes = Changes()
        for item in batch:
            _decide_one(item, facts, changes, now)
        if not changes:
            return changes, None
        revision = await transaction.run(ledger_store.changes_save(before, changes, now))
        for item in batch:
            for row in item.audit(now):
                await transaction.run(audit_store.audit_insert(row))
        return changes, revision

    def _now(self, told: Instant | None) -> Instant:
        """One time per batch, the database's if it tells one, never before that of the last."""
        self._last = max(self._last, self._clock.now() if told is None else told)
        return self._last

    def _failed(self, batch: list[_Item], error: Exception) -> None:
        """Nothing of the batch was kept: say so to everybody who waits for it."""
        fatal = isinstance(error, Fatal)
        if fatal:
            log.critical("cannot tell whether a commit is durable: %s; ending", error)
            self._closed = True
            self._on_fatal(error)
            batch = [*batch, *self._queue]
            self._queue.clear()
        self.counters.failed += len(batch)
        if isinstance(error, StoreError):
            log.error("a batch of %d was not kept: %s", len(batch), error)
            error = Error(
                Code.UNAVAILABLE, f"The database cannot take the change now: {error}. Try again."
            )
            if fatal:
                self._fatal = error
        else:
            log.exception("a batch of %d failed", len(batch), exc_info=error)
        for item in batch:
            item.fail(error)


def _decide_one(item: _Item, facts: Facts, changes: Changes, now: Instant) -> None:
    assert item.use_case is not None
    item.refusal, item.again = None, False
    try:
        made, item.answer = item.use_case.decide(facts, now)
    except Error as refusal:
        item.refusal = refusal
    except SearchAgain:
        item.searches += 1
        item.again = item.searches < SEARCHES_MAX
        item.refusal = Error(
            Code.OVERLOADED, f"Others were faster {item.searches} times; try again later."
        )
    except Exception as fault:  # a fault in one decision must not take the others down
        log.exception("deciding %r failed", type(item.use_case).__name__)
        item.refusal = fault
    else:
        facts.apply(made)
        changes.update(made)
