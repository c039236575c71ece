"""Keeps the catalog up to date: the in-memory copy of all providers that every search runs on.

It starts from a snapshot of the rows at a revision. After that, `PeerChanges` hands it one batch
after another, in the order of revisions: those of this process after their commits and, on a
shared database, those of peers from their change rows.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.large_changes import CatalogRemains
from moorage.core.ledger.search.catalog.packed_catalog import View
from moorage.service import errors
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed import catalog_copies
from moorage.service.feed.catalog_copies import Copy
from moorage.service.feed.change_rows import ChangesGone
from moorage.service.feed.peer_changes import PeerChanges, Position
from moorage.service.feed.saved_catalog import SavedCatalog
from moorage.store import import_mark
from moorage.store.api import Engine
from moorage.store.ledger import reads as ledger_reads


class CatalogIndex:
    """The catalog. Never a source of truth: it can be rebuilt at any time."""

    def __init__(
        self,
        engine: Engine,
        feed: PeerChanges,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
        turns: FairTurns,
        saved: SavedCatalog | None = None,
    ) -> None:
        """Create it, empty. `saved`: a copy in a file, with which the first `load` begins."""
        self._saved = saved
        self._tried = False
        """Whether the file was used, or found to be of no use."""
        self._engine = engine
        self.feed = feed
        feed.attach(self)
        self._turns = turns
        self.catalog = Catalog(standard_classes, standard_traits)
        self.began_at = Instant(0)
        """When the ledger and the standard classes and traits in it were created."""
        self.loaded = False
        self._whole = asyncio.Event()
        """Cleared while a large batch is being applied in parts."""
        self._whole.set()
        self._copies: list[Copy] = []
        """Copies that follow the same changes."""
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def epoch(self) -> int:
        """The epoch of `revision`."""
        return self.feed.position.epoch

    @property
    def revision(self) -> int:
        """The last revision that is applied to the catalog."""
        return self.feed.position.revision

    async def load(self) -> None:
        """Read everything; needed at the start and after the rows were replaced."""
        self.began_at = await self._engine.read_aside(ledger_reads.beginning_load())
        while True:
            copy = await self._restored()
            if copy is None:
                copy = self._empty()
                await copy.read(self._engine)
            try:
                # A batch of this process may have been followed since. On a shared database the
                # next read of the change rows finds it again; here nothing would.
                if not self._engine.shared and copy.epoch == self.epoch:
                    await copy.follow(self._engine, self._turns, lambda: self.revision)
            except ChangesGone:
                continue
            async with self.feed.handing_over:
                if not self._engine.shared and copy.revision < self.revision:
                    continue
                self._release_slowly(self.catalog)
                self._copies.clear()
                self.catalog = copy.catalog
                self.feed.restart(Position(copy.epoch, copy.revision, copy.at))
                self._whole.set()
            break
        if not self.loaded:
            mark = await self._engine.read(import_mark.mark_load())
            self.feed.mark.note(self.epoch, self.revision, mark)
        self.loaded = True

    async def _restored(self) -> Copy | None:
        """Return what is saved in the file, brought up to date; only at the start.

        Later, a reason to read everything again is a reason to read the rows.
        """
        saved = self._saved
        if saved is None:
            return None
        if self._tried:
            saved.doubt()
            return None
        self._tried = True
        copy = self._empty()
        if await saved.restored(copy, self.began_at, self._turns):
            return copy
        self._release_slowly(copy.catalog)
        return None

    async def seen(self) -> tuple[View, Position] | None:
        """Return the catalog as of a revision, and this revision; None: a batch was torn."""
        async with self.feed.handing_over:
            return (View.of(self.catalog), self.feed.position) if self._whole.is_set() else None

    async def apply(self, changes: Changes) -> None:
        """Apply a batch to the catalog and its copies: `PeerChanges` hands it over.

        If that fails half-way, `whole` waits until the rows are read again.
        """
        self._whole.clear()
        await catalog_copies.apply(self.catalog, changes, self._turns)
        for copy in self._copies:
            await catalog_copies.apply(copy.catalog, changes, self._turns)
        self._whole.set()

    async def current(self) -> Catalog:
        """Return the catalog with every change that was acknowledged before this call.

        Raises `Error`: UNAVAILABLE when a shared database does not answer.
        """
        with errors.translated():
            await self.feed.caught_up()
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
                async with self.feed.handing_over:
                    if copy.revision > self.revision + lag or copy.epoch != self.epoch:
                        raise ChangesGone
                    if copy.revision == self.revision + lag:
                        self._copies.append(copy)
                        break
            yield copy
        finally:
            if copy in self._copies:
                self._copies.remove(copy)
            self._release_slowly(copy.catalog)

    def _empty(self) -> Copy:
        return Copy(Catalog(self.catalog.standard_classes, self.catalog.standard_traits))

    def _release_slowly(self, catalog: Catalog) -> None:
        """Free a large catalog in spare turns, once nothing refers to it."""
        owned, loop = CatalogRemains(catalog), asyncio.get_running_loop()

        def gone() -> None:
            if not loop.is_closed():
                task = loop.create_task(Pieces(self._turns).driven(owned.emptied()))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

        weakref.finalize(catalog, gone).atexit = False
