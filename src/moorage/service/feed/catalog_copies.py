"""Builds new copies of the catalog while the index stays in use: a snapshot, then the change rows.

It does not block the event loop: a snapshot is read in a thread, large batches are applied in
parts.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Protocol, TypeVar

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.catalog import Loader
from moorage.core.ledger.search.catalog.large_changes import applying, is_large
from moorage.core.ledger.search.steps import Steps
from moorage.service.feed.change_rows import ChangesGone, tails
from moorage.store import changelog
from moorage.store.api import Engine, Plan
from moorage.store.changelog import Snapshot
from moorage.store.ledger.changes import CATALOG_KINDS

T = TypeVar("T")


class Driver(Protocol):
    """Runs long work piece by piece: `Turns` if a client is waiting, `Pieces` if it can wait."""

    async def driven(self, work: Steps[T]) -> T:
        """Run the work to its end; return its answer."""
        ...


class Copy:
    """A catalog as of a revision of an epoch; `at` is when that revision was written, if known."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.epoch = 0
        self.revision = 0
        self.at: Instant | None = None

    async def read(self, engine: Engine) -> None:
        """Read a snapshot into the catalog in the background. It must be empty and not in use."""
        snapshot = await engine.read_aside(self._read(), slow=True)
        self.epoch, self.revision, self.at = snapshot[:3]

    def _read(self) -> Plan[Snapshot]:
        loader = Loader(self.catalog)
        snapshot = yield from changelog.snapshot_read(loader.take)
        loader.finish(snapshot.classes, snapshot.traits)
        return snapshot

    async def follow(self, engine: Engine, driver: Driver, upto: Callable[[], int]) -> None:
        """Apply the change rows up to a revision that may still rise. Raises ChangesGone."""
        while self.revision < upto():
            async with aclosing(tails(engine, self.revision, CATALOG_KINDS)) as found:
                async for tail in found:
                    if tail.epoch != self.epoch or tail.compacted > self.revision:
                        raise ChangesGone
                    for batch in tail.batches:
                        if batch.revision > upto():
                            return
                        await apply(self.catalog, batch.ledger, driver)
                        self.revision, self.at = batch.revision, batch.at
            if self.revision < min(tail.revision, upto()):
                raise ChangesGone


async def apply(catalog: Catalog, changes: Changes, driver: Driver) -> None:
    """Apply a batch to a catalog: at once if that takes a few milliseconds, otherwise in parts."""
    if is_large(changes):
        await driver.driven(applying(catalog, changes))
    else:
        catalog.apply(changes)
