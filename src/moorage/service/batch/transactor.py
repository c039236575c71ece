"""The batch is the transaction: load, decide, save, commit, and only then index and answers.

The only place that begins and commits transactions. Up to `BATCH_MAX` requests share one load, one
save and one COMMIT. A refused request has changed nothing, so no savepoints are needed. Nothing is
acknowledged before it is durable, not even a refusal: it may depend on what an earlier request of
the same batch took.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.errors import Code, Error
from moorage.core.limits import CHANGES_QUEUED_MAX
from moorage.core.restart import Restart
from moorage.service import audit_log
from moorage.service.batch.batch import FREED_SLOWLY, Batches, Item, Made, forget
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.misfits import Misfits
from moorage.service.batch.request_queue import RequestQueue
from moorage.service.batch.use_case import RunPlan, SearchingUseCase, UseCase
from moorage.service.errors import DamagedError
from moorage.service.fair_turns import FairTurns, advanced
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.followers import Follower, notify
from moorage.service.feed.peer_changes import PeerChanges
from moorage.service.searches import Searches
from moorage.store.api import Conflict, Damaged, Engine, Fatal, Held, StoreError, Unavailable
from moorage.store.changelog import Batch

T = TypeVar("T")

RETRIES_MAX = 5
"""Most tries of a batch that a peer was faster than."""

HELD_MAX = 2
"""How often a batch waits for locks that others hold: 15 seconds each time."""

log = logging.getLogger("moorage.transactor")


@dataclass(slots=True)
class BatchCounters:
    """Counts of the transactor's work since its start, for metrics."""

    batches: int = 0
    requests: int = 0
    refused: int = 0
    retries: int = 0
    failed: int = 0
    overloaded: int = 0


NEEDS_MAX = 100
"""Most runs of a batch that needs more of the ledger each time."""


class _Fault(Exception):
    """An unforeseen error before the commit; `__cause__` has it."""


class Transactor:
    """Carries out queued requests, batch after batch.

    `on_fatal` is called when a commit may or may not be durable, or when the index is wrong and
    cannot be read again; it should end the process.
    """

    def __init__(
        self,
        engine: Engine,
        feed: PeerChanges,
        index: CatalogIndex,
        batches: Batches,
        turns: FairTurns,
        searches: Searches,
        *,
        queue_max: int = CHANGES_QUEUED_MAX,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        self._engine = engine
        self._feed = feed
        self._index = index
        self._batches = batches
        self._turns = turns
        self._searches = searches
        self._on_fatal = on_fatal
        self._queue = RequestQueue(queue_max)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._fatal: Error | None = None
        self._followers: list[Follower[AdmissionChanges]] = []
        self.counters = BatchCounters()

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def misfits(self) -> Misfits:
        """The tickets that did not fit into the ledger."""
        return self._batches.misfits

    def start(self) -> None:
        """Start; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Accept nothing more, finish what was accepted, stop."""
        self._closed = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def submit(self, use_case: UseCase[T]) -> T:
        """Carry out a use case; returns when it is durable.

        Raises `Error`: the refusal of its decision, OVERLOADED when the queue is full,
        UNAVAILABLE when the database cannot take it. In every case nothing was applied.
        """
        keys = await asyncio.to_thread(use_case.keys) if use_case.large else use_case.keys()
        if self._closed:
            raise Error(Code.UNAVAILABLE, "The service is shutting down; try again elsewhere.")
        item = Item(asyncio.get_running_loop().create_future(), use_case, keys)
        try:
            try:
                self._queue.add(item)
            except Error:
                self.counters.overloaded += 1
                raise
            self._wake.set()
            with self._turns.urgent:
                answer: T = await item.future
                return answer
        finally:
            del item  # a refusal refers to this frame: a cycle that only the collector would free

    def follow(self, follower: Follower[AdmissionChanges]) -> None:
        """Call `follower` with every change of pools and leases that this process commits."""
        self._followers.append(follower)

    async def _work(self) -> None:
        while True:  # no `Loop`: it is never cancelled, and ends once all accepted work is done
            if not self._queue:
                if self._closed:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            batch = self._queue.take()
            if batch:
                await self._carry_out(batch)

    async def _carry_out(self, batch: list[Item]) -> None:
        """Carry out a batch: retry it when peers were faster, then run its items one by one.

        If peers keep the locks that it needs, all items fail: one by one, each would wait again.
        """
        held = 0
        last: Exception
        for _ in range(RETRIES_MAX):
            try:
                await self._attempt(batch)
            except Conflict as conflict:
                last = conflict
                self.counters.retries += 1
                held += isinstance(conflict, Held)
                if held == HELD_MAX:
                    self._failed(batch, conflict)
                    return
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

    def _settle(self, batch: list[Item]) -> None:
        """Answer the decided items; those to search for again go first in the next batch."""
        again = []
        for item in batch:
            if item.again:
                again.append(item)
            else:
                item.settle()
        if again:
            self._queue.put_back(again)

    async def _search(self, batch: list[Item]) -> None:
        """Search for the claims of a batch, and put them first.

        The requests of a batch are concurrent, so any order is right. In this one, only other
        claims of the batch can take what a claim has found. Claims that there is no time to search
        for go first in the next batch.
        """
        searching = [item.work for item in batch if isinstance(item.work, SearchingUseCase)]
        if not searching:
            return
        try:
            catalog = await self._index.current()
        except Error as error:
            raise Unavailable(error.message) from error
        work = searching[0].prepare(searching, catalog, self._searches.given_up)
        while (done := advanced(work)) is None:
            await asyncio.sleep(0)
            await self._index.whole()
        postponed = set(map(id, done[0]))
        if postponed:
            late = [item for item in batch if id(item.work) in postponed]
            batch[:] = [item for item in batch if id(item.work) not in postponed]
            self._queue.put_back(late)
        for item in batch:
            if isinstance(item.work, SearchingUseCase):
                item.keys = item.work.keys()
        batch.sort(key=lambda item: not isinstance(item.work, SearchingUseCase))

    async def _attempt(self, batch: list[Item]) -> None:
        """Run a batch, and again while it needs more of the ledger."""
        extra = ExtraLoads()
        for _ in range(NEEDS_MAX):
            try:
                await self._run(batch, extra)
                return
            except Restart as restart:
                extra.add(restart.needs)
        raise _Fault from RuntimeError(f"more of the ledger was needed {NEEDS_MAX} times")

    async def _run(self, batch: list[Item], extra: ExtraLoads) -> None:
        try:
            await self._search(batch)
        except StoreError:
            raise
        except Exception as error:
            raise _Fault from error
        async with self._engine.transaction() as transaction:
            first = batch[0].work
            if isinstance(first, RunPlan):
                batch[0].answer = await transaction.run(first.plan())
                await transaction.commit()
                return
            try:
                made = await self._batches.run(batch, extra, transaction)
            except Damaged as error:  # only those that need the row fail
                raise _Fault from error
            except (StoreError, Restart):
                raise
            except Exception as error:
                raise _Fault from error
            if made.written:
                await transaction.commit()
        if made.rows:
            audit_log.write(made.rows)
        await self._publish(made)
        self.counters.batches += 1
        for item in batch:
            self.counters.requests += not item.again
            self.counters.refused += item.refusal is not None

    async def _publish(self, made: Made) -> None:
        """Update the index and notify all followers, after the commit."""
        ledger, admission, imports = (
            made.changes.ledger,
            made.changes.admission,
            made.changes.imports,
        )
        if imports is not None and made.revision is not None:
            self._feed.mark.note(made.epoch, made.revision, imports.after)
        if admission is not None and not (made.written or admission.unfinished):
            admission = None
        batch = None
        if made.revision is not None and ledger is not None:
            batch = Batch(made.revision, ledger, made.when.stamp, [])
        try:
            await self._feed.committed(made.epoch, batch, admission, made.changes.fleet, made.when)
        except Exception:
            log.exception(
                "cannot apply revision %d to the index; reading the whole index again",
                made.revision,
            )
            await self._index_reload()
        if batch is not None and len(batch.ledger.consumers) > FREED_SLOWLY:
            await forget(batch.ledger.consumers)  # no catalog and no follower needs them any more
        if admission is not None:
            notify(self._followers, admission, made.when)

    async def _index_reload(self) -> None:
        """Rebuild the index; if that fails, stop: searches would return wrong results."""
        try:
            await self._index.load()
        except Exception as error:
            log.critical("cannot read the index, stopping: %s", error)
            self._closed = True
            self._on_fatal(error)

    def _failed(self, batch: list[Item], error: Exception) -> None:
        """Answer all callers of a batch that nothing was saved."""
        fatal = isinstance(error, Fatal)
        if fatal:
            log.critical("cannot find out whether a commit is durable, stopping: %s", error)
            self._closed = True
            self._on_fatal(error)
            batch = [*batch, *self._queue.clear()]
        self.counters.failed += len(batch)
        if isinstance(error, Damaged):
            log.error("a request was not carried out: %s", error)
            error = DamagedError(error)
        elif isinstance(error, StoreError):
            log.error("a batch of %d requests was not committed: %s", len(batch), error)
            error = Error(
                Code.UNAVAILABLE, f"The database cannot take the change now: {error}. Try again."
            )
            if fatal:
                self._fatal = error
        else:
            log.exception("a batch of %d requests failed", len(batch), exc_info=error)
        for item in batch:
            item.fail(error)
