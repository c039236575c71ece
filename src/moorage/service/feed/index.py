"""Keeps the catalog up to date: the in-memory copy of all providers that every search runs on.

It starts from a snapshot of the rows at a revision. After that, `_follow` alone changes it, batch
by batch in the order of revisions: after the commit of a batch of this process and, on a shared
database, from the change rows of peers. Notifications only say when to look.
"""

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress

from moorage.core.clock import Instant
from moorage.core.errors import Error
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.large_changes import CatalogRemains
from moorage.service import errors
from moorage.service.background import Loop
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed import catalog_copies
from moorage.service.feed.bell import Bell
from moorage.service.feed.catalog_copies import ChangesGone, Copy
from moorage.service.feed.single_flight import SingleFlight
from moorage.store.api import Engine, StoreError
from moorage.store.changelog import Batch, Tail
from moorage.store.ledger import reads as ledger_reads

WOKEN_SECONDS_MAX = 1.0
"""Longest time between two reads of the change rows without a request or a notification."""

log = logging.getLogger("moorage.index")


class Index:
    """The catalog as of `revision`. Never a source of truth: it can be rebuilt at any time."""

    def __init__(
        self,
        engine: Engine,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
        turns: FairTurns,
    ) -> None:
        self._engine = engine
        self._turns = turns
        self.catalog = Catalog(standard_classes, standard_traits)
        self.revision = 0
        self.epoch = 0
        self.began_at = Instant(0)
        """When the ledger and the standard classes and traits in it were created."""
        self._at: Instant | None = None
        """When `revision` was written; None: unknown."""
        self.loaded = False
        self.bell = Bell()
        """Rings when `revision` or `epoch` has risen."""
        self._looks = SingleFlight(self._sync)
        self._loop = Loop(log, "cannot follow the other processes", WOKEN_SECONDS_MAX)
        self._reachable = True
        """Whether the database answered in the last round of the loop."""
        self._following = asyncio.Lock()
        self._whole = asyncio.Event()
        """Cleared while a large batch is being applied in parts."""
        self._whole.set()
        self._torn = False
        """Whether applying a batch failed half-way: the rows must be read again."""
        self._copies: list[Copy] = []
        """Copies that follow the same changes."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read everything; needed at the start and after the rows were replaced."""
        self.began_at = await self._engine.read_aside(ledger_reads.beginning_load())
        while True:
            copy = self._empty()
            await copy.read(self._engine)
            try:
                # A batch of this process may have been followed since. On a shared database the
                # next read of the change rows finds it again; here nothing would.
                if not self._engine.shared and copy.epoch == self.epoch:
                    await copy.follow(self._engine, self._turns, lambda: self.revision)
            except ChangesGone:
                continue
            async with self._following:
                if not self._engine.shared and copy.revision < self.revision:
                    continue
                self._let_go_slowly(self.catalog)
                self._copies.clear()
                self.catalog = copy.catalog
                self.epoch, self.revision, self._at = copy.epoch, copy.revision, copy.at
                self._engine.seen(self.epoch, self.revision, self._at)
                self._torn = False
                self._whole.set()
            break
        self.loaded = True
        self.bell.ring()

    async def apply(self, epoch: int, revision: int, at: Instant, changes: Changes) -> None:
        """Follow a batch that was committed here.

        If peers have committed before it and their batches are not known yet, the next read of the
        change rows finds all of them. The same holds in an unknown epoch: peers may have begun it
        because the database was restored, and may have written since.
        """
        async with self._following:
            goes_on = (epoch, revision) == (self.epoch, self.revision + 1)
            if goes_on or not self._engine.shared:
                await self._follow([Batch(revision, changes, at)])

    async def current(self) -> Catalog:
        """Return the catalog with every change that was acknowledged before this call.

        Raises `Error`: UNAVAILABLE when a shared database does not answer.
        """
        if self._engine.shared:
            with errors.translated():
                await self._looks.taken()
        await self.whole()
        return self.catalog

    def is_followed(self, copy: Copy) -> bool:
        """Return whether a copy follows this catalog; not after the catalog was read again."""
        return copy in self._copies

    async def whole(self) -> bool:
        """Wait while only a part of a batch is applied; return whether it was necessary."""
        waited = False
        while not self._whole.is_set():
            waited = True
            await self._whole.wait()
        return waited

    @asynccontextmanager
    async def copied(self, barrier: Callable[[], Awaitable[int]]) -> AsyncIterator[Copy]:
        """Build a second catalog from the rows; it stays at the same revision as this one.

        It is built in spare turns; later batches are applied to both. `barrier` is called when it
        is built, and returns how many revisions this catalog has missed for good: except for those,
        it has everything that was committed before. Raises ChangesGone.
        """
        copy = self._empty()
        try:
            await copy.read(self._engine)
            lag = await barrier()
            while True:
                await copy.follow(self._engine, self._turns, lambda: self.revision + lag)
                async with self._following:
                    if copy.revision > self.revision + lag or copy.epoch != self.epoch:
                        raise ChangesGone
                    if copy.revision == self.revision + lag:
                        self._copies.append(copy)
                        break
            yield copy
        finally:
            if copy in self._copies:
                self._copies.remove(copy)
            self._let_go_slowly(copy.catalog)

    def start(self) -> None:
        """Start to follow peers in the background, so that requests wait less."""
        if self._engine.shared:
            self._loop.start(self._listen)

    async def stop(self) -> None:
        """Stop following."""
        await self._loop.stop()
        await self._looks.stop()

    def _empty(self) -> Copy:
        return Copy(Catalog(self.catalog.standard_classes, self.catalog.standard_traits))

    def _let_go_slowly(self, catalog: Catalog) -> None:
        """Free a large catalog in spare turns, once nothing refers to it."""
        owned, loop = CatalogRemains(catalog), asyncio.get_running_loop()

        def gone() -> None:
            if not loop.is_closed():
                task = loop.create_task(Pieces(self._turns).driven(owned.emptied()))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

        weakref.finalize(catalog, gone).atexit = False

    async def _sync(self) -> None:
        """Follow what peers have committed; if that fails half-way, read everything again."""
        try:
            if not self._torn:
                return await self._catch_up()
        except Exception:
            if not self._torn:
                raise
            log.exception(
                "cannot follow the changes of other processes; reading the whole index again"
            )
        await self.load()

    async def _catch_up(self) -> None:
        epoch, known, at, catalog = self.epoch, self.revision, self._at, self.catalog
        newest: int | None = None
        try:
            async with aclosing(catalog_copies.tails(self._engine, known)) as found:
                async for tail in found:
                    if newest is None and not await self._goes_on(tail, epoch, known, at):
                        break
                    async with self._following:
                        followed = self.catalog is catalog
                        if followed:
                            await self._follow(tail.batches)
                    if not followed:  # it was read again, perhaps at an older revision
                        return await self._catch_up()
                    newest = tail.revision
        except ChangesGone:  # between two pages: the change rows do not continue from here
            return await self._catch_up()
        if newest is None or self.revision < newest:
            log.warning("the change rows do not continue from here; reading the whole ledger again")
            await self.load()

    async def _goes_on(self, tail: Tail, epoch: int, known: int, at: Instant | None) -> bool:
        """Return whether the change rows continue what is known.

        A transaction is executed once: if the last known revision was written at the same time in
        both histories, everything before it is the same.

        Args:
            tail: what was read.
            epoch: the epoch when the read began; an epoch begun here since is not in `tail`.
            known: the last known revision.
            at: when that was written.
        """
        same = at is not None and tail.at == at
        changed = at is not None and tail.at is not None and not same
        back = (tail.epoch, tail.revision) < (epoch, known)
        if back or (changed and tail.epoch == epoch):
            log.warning("revision %d.%d no longer exists", epoch, known)
            await self._engine.history_checked()
            return False
        if not tail.compacted <= known <= tail.revision:
            return False
        if tail.epoch == epoch:
            return True
        # Another server has taken over, or another epoch was begun.
        if same:
            log.info("epoch %d continues from revision %d", tail.epoch, known)
            self.epoch = max(self.epoch, tail.epoch)
            self.bell.ring()
        return same

    async def epoch_raised(self, epoch: int) -> None:
        """Follow a new epoch that was begun here; the rows stay as they are.

        On a shared database, reading the change rows shows whether they did: an epoch is begun
        because the database was restored.
        """
        if self._engine.shared:
            with suppress(Error):  # it has begun all the same; the next read finds out
                await self.current()
            return
        async with self._following:
            self.epoch = max(self.epoch, epoch)
        self.bell.ring()

    async def _follow(self, batches: Iterable[Batch]) -> None:
        """Apply batches; the caller holds `_following`."""
        known = self.revision
        try:
            for batch in batches:
                if batch.revision > self.revision:
                    await self._apply(batch.changes)
                    self.revision, self._at = batch.revision, batch.at
        except BaseException:
            self._torn = True  # `whole` waits until it is read again
            raise
        self._engine.seen(self.epoch, self.revision, self._at)
        if self.revision > known:  # most reads find nothing new: waiters need not look
            self.bell.ring()

    async def _apply(self, changes: Changes) -> None:
        self._whole.clear()
        await catalog_copies.apply(self.catalog, changes, self._turns)
        for copy in self._copies:
            await catalog_copies.apply(copy.catalog, changes, self._turns)
        self._whole.set()

    async def _listen(self) -> float:
        """Look once for changes of peers; each request looks again itself."""
        try:
            await self._engine.woken(WOKEN_SECONDS_MAX)
            await self._looks.taken()
        except StoreError as error:
            if self._reachable:
                log.warning("the database does not answer: %s", error)
            self._reachable = False
            return WOKEN_SECONDS_MAX
        self._reachable = True
        return 0.0
