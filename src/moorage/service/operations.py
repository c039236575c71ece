"""Database maintenance: signs of life, checks, backups, epochs."""

import os
import re

from moorage.core.clock import Clock
from moorage.core.errors import Code, Error
from moorage.core.limits import BACKUP_NAME_LENGTH_MAX
from moorage.service import errors
from moorage.service.access.audit import Audit, audit_row
from moorage.service.audit_entries import Actor
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed.catalog_copies import Copy
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.change_rows import ChangesGone
from moorage.service.feed.peer_changes import PeerChanges
from moorage.service.feed.saved_catalog import SavedCatalog
from moorage.store import changelog
from moorage.store import check as check_store
from moorage.store import high_water_mark as mark_store
from moorage.store.access import audit as audit_store
from moorage.store.api import Engine, Plan
from moorage.store.differences import FOUND_MAX

BACKUP_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{BACKUP_NAME_LENGTH_MAX - 1}}}")
"""Valid names of backups in `backup_directory`: no other folders, no hidden files."""


class Operations:
    """Maintenance of a running service's database."""

    def __init__(
        self,
        engine: Engine,
        feed: PeerChanges,
        index: CatalogIndex,
        transactor: Transactor,
        audit: Audit,
        turns: FairTurns,
        clock: Clock,
        backup_directory: str | None,
        saved: SavedCatalog | None = None,
    ) -> None:
        """Create it.

        `backup_directory` is where `backup_named` writes; None: it is refused. `saved`: the file
        with the index for the next start, if there is one.
        """
        self._saved = saved
        self._engine = engine
        self._feed = feed
        self._index = index
        self._transactor = transactor
        self._audit = audit
        self._turns = turns
        self._clock = clock
        self._backup_directory = backup_directory

    async def answer(self) -> None:
        """Return when a transaction that changes nothing was committed, in turn with all others.

        Raises `Error`: OVERLOADED, UNAVAILABLE.
        """
        await self._transactor.submit(RunPlan(changelog.clock_load))

    async def check(self) -> list[str]:
        """Recompute every sum, generation and tree from the rows, and the index, too.

        Returns one sentence per difference; empty if there is none. It does not delay requests: a
        thread reads the rows, and spare turns build a copy of the index. The copy follows the
        change rows to the index's revision; then both follow commits while spare turns compare
        them step by step.
        Raises `Error`: UNAVAILABLE.
        """
        known = self._index.catalog
        with errors.translated():
            found = await self._engine.read_aside(check_store.file_differences_load(), slow=True)
            if found:
                return found
            for plan in check_store.content_plans(known.standard_classes, known.standard_traits):
                found += await self._engine.read_aside(plan, slow=True)
            try:
                async with self._index.copied(lambda: self._lag(found)) as copy:
                    wrong = await self._compared(copy)
                if wrong and self._saved is not None:
                    self._saved.distrust()
                found += wrong
            except ChangesGone:
                found.append("the change rows were deleted during the check; check again")
        return found

    async def _lag(self, found: list[str]) -> int:
        """Return how many revisions the index lags behind after it should have caught up."""
        if self._engine.shared:
            await self._index.current()
            return 0
        # Read between two batches: at this moment the index should have followed all commits.
        epoch, revision = await self._transactor.submit(RunPlan(changelog.clock_load))
        index = self._index
        if (epoch, revision) != (index.epoch, index.revision):
            found.append(
                f"the index is at revision {index.epoch}.{index.revision}, "
                f"the rows are at {epoch}.{revision}"
            )
        return revision - index.revision

    async def _compared(self, copy: Copy) -> list[str]:
        """Compare the index with a copy at the same revision. Raises ChangesGone."""
        found: list[str] = []
        pieces = Pieces(self._turns)
        comparing = self._index.catalog.comparing(copy.catalog)
        while len(found) < FOUND_MAX:
            await pieces.rest()
            await self._index.whole()
            if not self._index.is_followed(copy):
                raise ChangesGone
            part = next(comparing, None)
            if part is None:
                return found
            found += part
        return [*found, "index: there are more differences; the rest was not compared"]

    async def backup(self, path: str, *, by: Actor) -> None:
        """Write a complete copy of the database to a new file while the service continues.

        The audit row is written first, so that no copy is made without one. A failure leaves
        another row.

        Raises `Error`: INVALID if the file exists or cannot be created, UNAVAILABLE.
        """
        await self._audit.record(by, "database.backup", path)
        try:
            with errors.translated():
                await self._engine.backup(path)
        except Error as error:
            await self.backup_noted(path, by=by, failed=error.message)
            raise

    async def epoch_raise(self, *, by: Actor) -> tuple[int, int]:
        """Start a new epoch after the database was restored; return (epoch, revision).

        After this, cursors of earlier epochs are refused, and every fencing token is higher than
        all before. Raises `Error`: UNAVAILABLE.
        """
        now = self._clock.now()

        def plan() -> Plan[tuple[int, int]]:
            epoch, revision = yield from mark_store.epoch_raise()
            after = {"epoch": epoch, "revision": revision}
            row = audit_row(now, by, "database.epoch_raise", self._engine.name, after=after)
            yield from audit_store.audit_insert(row)
            return epoch, revision

        epoch, revision = await self._transactor.submit(RunPlan(plan))
        await self._feed.epoch_raised(epoch)
        return epoch, revision

    async def backup_named(self, name: str, *, by: Actor) -> str:
        """As `backup`, to a file of this name in `backup_directory`; return its path.

        Raises `Error`: INVALID, also for a name with a slash or a leading dot, and if no folder is
        configured.
        """
        if self._engine.shared:
            await self.backup(name, by=by)  # raises: PostgreSQL has its own tools
        folder = self._backup_directory
        if folder is None:
            raise Error(
                Code.INVALID,
                "This server has no folder for backups: set backup_directory, or run"
                " `moorage db backup` on its machine.",
            )
        if not BACKUP_NAME.fullmatch(name):
            raise Error(
                Code.INVALID,
                f"{name!r} is not a valid name for a backup: use letters, digits, '.', '_' and '-',"
                " but no leading dot or dash. The setting backup_directory names the folder.",
            )
        path = os.path.join(os.path.abspath(folder), name)
        await self.backup(path, by=by)
        return path

    async def backup_noted(self, path: str, *, by: Actor, failed: str | None = None) -> None:
        """Write the audit row of a copy that the caller makes itself, with its own permissions.

        `failed` is the reason if that copy has failed. Raises `Error`: OVERLOADED, UNAVAILABLE.
        """
        if failed is None:
            await self._audit.record(by, "database.backup", path)
        else:
            after = {"reason": failed}
            await self._audit.record(by, "database.backup_failed", path, after=after)

    async def wipe(self) -> None:
        """Delete all data but tokens. For test servers only, which the calling face ensures."""
        revision = await self._transactor.submit(RunPlan(changelog.wipe))
        self._feed.mark.note(self._feed.position.epoch, revision, None)
        await self._index.load()
