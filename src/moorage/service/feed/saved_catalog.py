"""Keeps a copy of the catalog in a file, so that a start need not read all rows.

The file has the catalog as of a revision; the change rows bring it up to date. If anything about it
is doubtful, it is ignored and the rows are read: they alone are the truth.
"""

import asyncio
import logging
import os
from threading import Event
from time import perf_counter
from typing import Protocol

from moorage.core.clock import Instant
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.packed_catalog import Restorer, View
from moorage.service.background import Loop
from moorage.service.feed.catalog_copies import Copy, Driver
from moorage.service.feed.change_rows import ChangesGone
from moorage.service.feed.peer_changes import Position
from moorage.store import catalog_file, changelog
from moorage.store.api import Engine, StoreError
from moorage.store.catalog_file import Doubtful, Origin

PROVIDERS_MIN = 10_000
"""Smaller catalogs are not saved: to read their rows takes a tenth of a second."""

PERIOD_SECONDS = 60.0
"""Time between two looks whether much has changed."""

PAUSE_SECONDS_MIN = 600.0
"""Least time between two saves while the service runs."""

PACE = 9.0
"""How long the saving thread rests, as a multiple of how long it has worked."""

log = logging.getLogger("moorage.index")


class Source(Protocol):
    """The catalog that is saved: the index."""

    catalog: Catalog

    async def seen(self) -> tuple[View, Position] | None:
        """Return the catalog as of a revision, and this revision; None: it is not whole."""
        ...


def rows_max(providers: int) -> int:
    """Return how many change rows may follow a file: to apply them must be the smaller part."""
    return max(1_000, providers // 8)


class SavedCatalog:
    """The file of one database, which no other process may use.

    Args:
        engine: of the database.
        path: of the file.
        providers_min: smaller catalogs are not saved.
    """

    def __init__(self, engine: Engine, path: str, providers_min: int = PROVIDERS_MIN) -> None:
        self._engine = engine
        self.path = path
        self._providers_min = providers_min
        self.origin: Origin | None = None
        """Of the file, once it was used or written; None: it is not known to be right."""
        self._began_at = Instant(0)
        self._source: Source | None = None
        self._loop = Loop(log, "the catalog was not saved", PAUSE_SECONDS_MIN)
        self._hurry = Event()
        self._distrusted = False
        self._writing: asyncio.Future[None] | None = None
        self._trouble = ""
        """Why the file was not written the last time."""

    async def restored(self, copy: Copy, began_at: Instant, driver: Driver) -> bool:
        """Fill an empty copy from the file and the change rows since; return whether it is right.

        If not, the copy must not be used. `began_at`: when the ledger was created.
        """
        self._began_at = began_at
        try:
            origin = await self._read(copy)
            now = await self._continuation(origin)
            copy.epoch, copy.revision, copy.at = origin.epoch, origin.revision, origin.at
            await copy.follow(self._engine, driver, lambda: now.revision)
        except FileNotFoundError:
            return False
        except (Doubtful, ChangesGone, OSError, StoreError) as error:
            why = str(error) or "the change rows do not continue it"
            log.warning("%s is not used: %s; reading all rows instead", self.path, why)
            return False
        except Exception:  # whatever is wrong with it, the rows are right
            log.exception("%s is not used; reading all rows instead", self.path)
            return False
        self.origin = origin
        return True

    def start(self, source: Source) -> None:
        """Save the catalog from time to time, in the background."""
        self._source = source
        self._loop.start(self._look)

    async def stop(self) -> None:
        """Save the catalog if much has changed. Nothing may change it any more."""
        self._hurry.set()
        await self._loop.stop()
        if self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])
        try:
            await self._save()
        except Exception:  # the next start reads all rows
            log.exception("the catalog was not saved")

    def distrust(self) -> None:
        """Remove the file, and save nothing any more: the catalog is not what the rows are."""
        self._distrusted = True
        self._remove()

    def doubt(self) -> None:
        """Write the file again soon: its catalog was replaced by what the rows have."""
        self.origin = None

    def _remove(self) -> None:
        self.origin = None
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.error("cannot remove %s: %s; remove it by hand", self.path, error.strerror)

    async def _look(self) -> float:
        await asyncio.sleep(PERIOD_SECONDS)
        return PAUSE_SECONDS_MIN if await self._save() else 0.0

    async def _save(self) -> bool:
        """Save the catalog if it is large and much has changed; return whether it was tried."""
        assert self._source is not None
        providers = len(self._source.catalog)
        if providers < self._providers_min and self.origin is not None:
            self._remove()  # no later save would replace it
        if self._distrusted or providers < self._providers_min or await self._is_fresh(providers):
            return False
        seen = await self._source.seen()
        if seen is None:
            return False
        view, (epoch, revision, at) = seen
        if at is None:  # nothing would tell this revision from that of another history
            return False
        origin = Origin.of(self._began_at, epoch, revision, at, view.providers)
        self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, origin, view))
        # Also after a cancellation: the thread cannot be stopped.
        await asyncio.shield(self._writing)
        return True

    async def _is_fresh(self, providers: int) -> bool:
        """Have only a few change rows followed the file?"""
        saved, few = self.origin, rows_max(providers) // 2
        if saved is None:
            return False
        now = await self._engine.read_aside(changelog.continuation_load(saved.revision, few + 1))
        return (now.epoch, now.at) == (saved.epoch, saved.at) and now.rows <= few

    def _write(self, origin: Origin, view: View) -> None:
        try:
            catalog_file.write(self.path, origin, view.parts(), _Pace(self._hurry).rest)
            if self._distrusted:
                self.distrust()
        except OSError as error:
            if str(error) != self._trouble:  # a full disk may stay full for weeks
                log.warning("cannot write %s: %s; the next start reads all rows", self.path, error)
            self._trouble = str(error)
        else:
            self._trouble = ""
            self.origin = None if self._distrusted else origin

    async def _read(self, copy: Copy) -> Origin:
        """Fill the copy. Raises Doubtful, OSError, and anything if the parts are wrong."""
        restorer, loop = Restorer(copy.catalog), asyncio.get_running_loop()
        found: list[Origin] = []

        def use(origin: Origin) -> None:
            """Decide whether to read on; in the thread that reads."""
            asyncio.run_coroutine_threadsafe(self._continuation(origin), loop).result()
            found.append(origin)

        await asyncio.to_thread(catalog_file.read, self.path, use, restorer.take)
        restorer.finish()
        return found[0]

    async def _continuation(self, origin: Origin) -> changelog.Continuation:
        """Return what follows a file. Raises Doubtful: this database does not continue it."""
        if (why := origin.foreign()) is not None:
            raise Doubtful(why)
        if origin.began_at != self._began_at:
            raise Doubtful("it belongs to another database")
        most = rows_max(origin.providers)
        now = await self._engine.read_aside(changelog.continuation_load(origin.revision, most + 1))
        if now.epoch != origin.epoch:
            raise Doubtful(f"it is of epoch {origin.epoch}, and the database of {now.epoch}")
        if now.at != origin.at or now.revision < origin.revision:
            raise Doubtful(f"the database has another revision {origin.revision}, or none")
        if now.rows > most:
            raise Doubtful(f"more than {most} change rows have followed it")
        return now


class _Pace:
    """Lets a thread rest for some time after each piece of work, unless it must hurry."""

    def __init__(self, hurry: Event) -> None:
        self._hurry = hurry
        self._began = perf_counter()

    def rest(self) -> None:
        self._hurry.wait(PACE * (perf_counter() - self._began))
        self._began = perf_counter()
