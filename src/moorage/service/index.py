"""Upkeep of the candidate index: the in-memory copy of the fleet that every search runs on.

The start is a snapshot of the rows at a revision; from there one way in, `_follow`, batch by batch
in the order of their revisions: after the commit of a batch of our own, and on a shared database
from the change rows of the others. Notifications only say when to look.
"""

import asyncio
import logging
from collections.abc import Iterable

from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Fleet
from moorage.service import faults
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine, StoreError, Unavailable

WOKEN_SECONDS_MAX = 1.0
"""How long other processes' changes may go unread when nobody asks and nothing is heard."""

log = logging.getLogger("moorage.index")


class Index:
    """The fleet as of `revision`. Never a source of truth: it can be rebuilt at any time."""

    def __init__(
        self, engine: Engine, standard_classes: frozenset[str], standard_traits: frozenset[str]
    ) -> None:
        self._engine = engine
        self.fleet = Fleet(standard_classes, standard_traits)
        self.revision = 0
        self.epoch = 0
        self.loaded = False
        self._next: asyncio.Future[None] | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read everything anew; needed at the start and after the rows were replaced."""
        epoch, revision, rows = await self._engine.read_aside(ledger_store.snapshot_load())
        if (epoch, revision) >= (self.epoch, self.revision) or epoch != self.epoch:
            self.fleet = self.rebuilt(rows)
            self.epoch, self.revision = epoch, revision
        self.loaded = True

    def rebuilt(self, rows: Changes) -> Fleet:
        """Return a fleet made of nothing but these rows."""
        fleet = Fleet(self.fleet.standard_classes, self.fleet.standard_traits)
        fleet.apply(rows)
        return fleet

    def apply(self, revision: int, changes: Changes) -> None:
        """Follow a batch that was committed here.

        If others have committed before it and that is not known yet, it waits for the next look at
        the change rows, like theirs.
        """
        if revision == self.revision + 1 or not self._engine.shared:
            self._follow([(revision, changes)])

    async def current(self) -> Fleet:
        """Return the fleet with every change that was acknowledged before this call.

        Raises `Error`: UNAVAILABLE, when a database that others use does not answer.
        """
        if self._engine.shared:
            with faults.told():
                await self._synced()
        return self.fleet

    def start(self) -> None:
        """Begin to follow the others without being asked, so that whoever asks waits less."""
        if self._engine.shared:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def stop(self) -> None:
        """End what `start` has begun."""
        tasks = [task for task in (self._listening, self._syncing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._next is not None:
            self._fail(self._next, Unavailable("the service is shutting down"))

    async def _synced(self) -> None:
        """Wait for a look at the rows that began after this call; all who wait share it."""
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.create_future()
        if self._syncing is None or self._syncing.done():
            self._syncing = loop.create_task(self._sync_while_asked())
        await asyncio.shield(self._next)

    async def _sync_while_asked(self) -> None:
        while self._next is not None:
            asked, self._next = self._next, None
            try:
                await self._sync()
            except asyncio.CancelledError:
                self._fail(asked, Unavailable("the service is shutting down"))
                raise
            except Exception as error:  # whoever asked is told, and asks again if need be
                self._fail(asked, error)
            else:
                asked.set_result(None)

    @staticmethod
    def _fail(asked: asyncio.Future[None], error: Exception) -> None:
        asked.set_exception(error)
        asked.exception()  # perhaps nobody waits any more

    async def _sync(self) -> None:
        while True:
            tail = await self._engine.read(ledger_store.changes_load(self.revision))
            if tail.epoch != self.epoch or tail.compacted > self.revision:
                log.warning("reading the whole ledger anew: the change rows do not reach back")
                await self.load()
                return
            self._follow(tail.batches)
            if self.revision >= tail.revision:
                return
            if not tail.batches:
                await self.load()
                return

    def _follow(self, batches: Iterable[tuple[int, Changes]]) -> None:
        for revision, changes in batches:
            if revision > self.revision:
                self.fleet.apply(changes)
                self.revision = revision

    async def _listen(self) -> None:
        reachable = True
        while True:
            try:
                await self._engine.woken(WOKEN_SECONDS_MAX)
                await self._synced()
                reachable = True
            except StoreError as error:
                if reachable:
                    log.warning("the database does not answer: %s", error)
                reachable = False
                await asyncio.sleep(WOKEN_SECONDS_MAX)
            except Exception:  # the requests themselves look again
                log.exception("following the other processes failed")
                await asyncio.sleep(WOKEN_SECONDS_MAX)
