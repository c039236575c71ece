"""The one reader of change rows in a process: hands the commits of peers to all who need them.

The index needs those of the ledger, the followers those of the other rooms. All get each batch
from the same read, in the order of revisions, before the cursor passes it. Notifications of the
database only say when to look; a search looks itself, and need not wait for them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from typing import NamedTuple, Protocol

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.ledger.facts import Changes
from moorage.core.service_time import When
from moorage.service.background import Loop
from moorage.service.feed.bell import Bell
from moorage.service.feed.change_rows import ChangesGone, tails
from moorage.service.feed.followers import RoomFollowers
from moorage.service.feed.import_mark import ImportMark
from moorage.service.feed.single_flight import SingleFlight
from moorage.store.api import Engine, StoreError
from moorage.store.changelog import FOLLOWED_KINDS, Batch, Tail

WOKEN_SECONDS_MAX = 1.0
"""Longest time between two reads of the change rows without a request or a notification."""

log = logging.getLogger("moorage.index")


class Room(Protocol):
    """A copy of the rows of a room in memory, which must follow every batch: the index."""

    async def apply(self, changes: Changes) -> None:
        """Apply a batch; the next one follows when this has returned."""
        ...

    async def load(self) -> None:
        """Read all rows again, and call `PeerChanges.restart`."""
        ...


class Position(NamedTuple):
    """A revision of an epoch; `at` is when it was written, if known."""

    epoch: int
    revision: int
    at: Instant | None


class PeerChanges:
    """Follows the commits of peers. Every batch up to `position` has been handed over.

    Commits of this process are handed over without reading them. If the database is not shared,
    there are no others, and nothing is ever read.
    """

    def __init__(
        self, engine: Engine, followers: RoomFollowers, when: Callable[[Instant], When]
    ) -> None:
        """Create it; `when` estimates the time of a batch that was written at an instant."""
        self._engine = engine
        self._followers = followers
        self._when = when
        self._room: Room
        self.mark = ImportMark()
        self.position = Position(0, 0, None)
        self.bell = Bell()
        """Rings when the revision or epoch has risen."""
        self.handing_over = asyncio.Lock()
        """Held while batches are handed over, and while `position` is set to a snapshot."""
        self._restarts = 0
        self._torn = False
        """Whether applying a batch failed half-way: the rows must be read again."""
        self._looks = SingleFlight(self._sync)
        self._loop = Loop(log, "cannot follow the other processes", WOKEN_SECONDS_MAX)
        self._following = False
        """Whether peers are followed without requests, too."""
        self._reachable = True
        """Whether the database answered in the last round of the loop."""

    def attach(self, room: Room) -> None:
        """Hand every batch to this room; called once, before its first `load`."""
        self._room = room

    def restart(self, position: Position) -> None:
        """Continue from a snapshot that the room has read; the caller holds `handing_over`."""
        self.position = position
        self._restarts += 1
        self._torn = False
        self._engine.seen(*position)
        self._followers.missed()
        self.bell.ring()

    async def caught_up(self) -> None:
        """Return when every change that was acknowledged before this call is handed over.

        Raises StoreError.
        """
        if self._engine.shared:
            await self._looks.taken()

    async def committed(
        self,
        epoch: int,
        batch: Batch | None,
        admission: AdmissionChanges | None,
        fleet: FleetChanges | None,
        when: When,
    ) -> None:
        """Hand over what was committed here; without a batch it has raised no revision.

        Raises what the room raises; the followers are notified all the same.

        If peers have committed before it and their batches are not known yet, the next read of the
        change rows finds all of them, and the position stays. The same holds in an unknown epoch:
        peers may have begun it because the database was restored, and may have written since. That
        read is begun here, unless following has stopped: nothing else tells of own commits.
        """
        if batch is None:
            self._followers.committed(admission, fleet, when, was_read=False)
            return
        async with self.handing_over:
            known, revision, _ = self.position
            continues = (epoch, batch.revision) == (known, revision + 1)
            was_read = self._engine.shared and (epoch, batch.revision) <= (known, revision)
            try:
                if continues or not self._engine.shared:
                    await self._hand_over([batch])
                elif self._following and not was_read:
                    self._looks.begun()  # no notification tells that its turn has come
            finally:
                self._followers.committed(admission, fleet, when, was_read=was_read)

    async def epoch_raised(self, epoch: int) -> None:
        """Follow a new epoch that was begun here; the rows stay as they are.

        On a shared database, reading the change rows shows whether they did: an epoch is begun
        because the database was restored.
        """
        if self._engine.shared:
            with suppress(StoreError):  # it has begun all the same; the next read finds out
                await self.caught_up()
            return
        async with self.handing_over:
            self._enter(epoch)

    def start(self) -> None:
        """Start to follow peers in the background, so that requests wait less."""
        if self._engine.shared:
            self._following = True
            self._loop.start(self._listen)

    async def stop(self) -> None:
        """Stop following."""
        self._following = False
        await self._loop.stop()
        await self._looks.stop()

    async def _sync(self) -> None:
        """Follow what peers have committed; if a row cannot be followed, read everything again."""
        try:
            if not self._torn:
                return await self._catch_up()
        except StoreError:
            raise
        except Exception:
            log.exception(
                "cannot follow the changes of other processes; reading the whole index again"
            )
        await self._room.load()

    async def _catch_up(self) -> None:
        known, restarts = self.position, self._restarts
        newest: int | None = None
        try:
            async with aclosing(tails(self._engine, known.revision, FOLLOWED_KINDS)) as found:
                async for tail in found:
                    if newest is None and not await self._continues(tail, known):
                        break
                    self.mark.note(tail.epoch, tail.revision, tail.importing)
                    async with self.handing_over:
                        if self._restarts == restarts:
                            await self._hand_over(tail.batches)
                    if self._restarts != restarts:  # perhaps at an older revision
                        return await self._catch_up()
                    newest = tail.revision
        except ChangesGone:  # the history changed during the read
            return await self._catch_up()
        if newest is None or self.position.revision < newest:
            log.warning("the change rows do not continue from here; reading the whole ledger again")
            await self._room.load()

    async def _continues(self, tail: Tail, known: Position) -> bool:
        """Return whether the change rows continue what is known. Raises ChangesGone: read again.

        A transaction is executed once: if the last known revision was written at the same time in
        both histories, everything before it is the same.

        Args:
            tail: what was read.
            known: the position when the read began; an epoch begun here since is not in `tail`.
        """
        epoch, revision, at = known
        same = at is not None and tail.at == at
        changed = at is not None and tail.at is not None and not same
        back = (tail.epoch, tail.revision) < (epoch, revision)
        if back or (changed and tail.epoch == epoch):
            log.warning("revision %d.%d no longer exists", epoch, revision)
            await self._engine.history_checked()
            return False
        if not tail.compacted <= revision <= tail.revision:
            return False
        if tail.epoch == epoch:
            return True
        # Another server has taken over, or another epoch was begun.
        if same:
            async with self.handing_over:
                if self.position != known:
                    # Committed here since, perhaps lost with the former server: what was read
                    # cannot tell.
                    raise ChangesGone
                log.info("epoch %d continues from revision %d", tail.epoch, revision)
                self._enter(tail.epoch)
        return same

    def _enter(self, epoch: int) -> None:
        self.position = self.position._replace(epoch=max(self.position.epoch, epoch))
        self.bell.ring()

    async def _hand_over(self, batches: Iterable[Batch]) -> None:
        """Hand over batches; the caller holds `handing_over`."""
        before = self.position.revision
        try:
            for batch in batches:
                if batch.revision > self.position.revision:
                    await self._room.apply(batch.ledger)
                    self.position = Position(self.position.epoch, batch.revision, batch.at)
                    if batch.others:
                        self._followers.report(batch, self._when(batch.at))
        except BaseException:
            self._torn = True  # the room is not used until it is read again
            raise
        self._engine.seen(*self.position)
        if self.position.revision > before:  # most reads find nothing new
            self.bell.ring()

    async def _listen(self) -> float:
        """Look once for changes of peers; each request looks again itself."""
        try:
            await self._engine.woken(WOKEN_SECONDS_MAX)
            await self.caught_up()
        except StoreError as error:
            if self._reachable:
                log.warning("the database does not answer: %s", error)
            self._reachable = False
            return WOKEN_SECONDS_MAX
        self._reachable = True
        return 0.0
