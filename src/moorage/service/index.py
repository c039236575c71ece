"""Upkeep of the candidate index: the in-memory copy of the fleet that every search runs on.

The start is a snapshot of the rows at a revision; from there one way in, `_follow`, batch by batch
in the order of their revisions: after the commit of a batch of our own, and on a shared database
from the change rows of the others. Notifications only say when to look.
"""

import asyncio
import logging
from collections.abc import Iterable

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search import Fleet
from moorage.service import faults
from moorage.service.looks import Look
from moorage.service.wakeups import Bell
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine, StoreError

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
        self.began_at = Instant(0)
        """When the ledger was made, and the standard classes and traits with it."""
        self.loaded = False
        self.bell = Bell()
        """Rings when `revision` has risen."""
        self._looks = Look(self._sync)
        self._listening: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Read everything anew; needed at the start and after the rows were replaced."""
        self.began_at = await self._engine.read_aside(ledger_store.beginning_load())
        while True:
            epoch, revision, rows = await self._engine.read_aside(ledger_store.snapshot_load())
            # A batch of our own may have been followed since. On a shared database the next look
            # finds it again; here nobody would.
            if self._engine.shared or epoch != self.epoch or revision >= self.revision:
                break
        self.fleet = self.rebuilt(rows)
        self.epoch, self.revision = epoch, revision
        self.loaded = True
        self.bell.ring()

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
                await self._looks.taken()
        return self.fleet

    def start(self) -> None:
        """Begin to follow the others without being asked, so that whoever asks waits less."""
        if self._engine.shared:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def stop(self) -> None:
        """End what `start` has begun."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._looks.stop()

    async def _sync(self) -> None:
        while True:
            known = self.revision
            tail = await self._engine.read(ledger_store.changes_load(known))
            # Fewer than we have seen: the server lost some, and nobody has raised the epoch yet.
            followed = tail.epoch == self.epoch and tail.compacted <= known <= tail.revision
            if not followed or (known < tail.revision and not tail.batches):
                log.warning("reading the whole ledger anew: the change rows do not go on from here")
                await self.load()
                return
            self._follow(tail.batches)
            if self.revision >= tail.revision:
                return

    def _follow(self, batches: Iterable[tuple[int, Changes]]) -> None:
        for revision, changes in batches:
            if revision > self.revision:
                self.fleet.apply(changes)
                self.revision = revision
        self.bell.ring()

    async def _listen(self) -> None:
        reachable = True
        while True:
            try:
                await self._engine.woken(WOKEN_SECONDS_MAX)
                await self._looks.taken()
                reachable = True
            except StoreError as error:
                if reachable:
                    log.warning("the database does not answer: %s", error)
                reachable = False
                await asyncio.sleep(WOKEN_SECONDS_MAX)
            except Exception:  # the requests themselves look again
                log.exception("following the other processes failed")
                await asyncio.sleep(WOKEN_SECONDS_MAX)
