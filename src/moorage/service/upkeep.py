"""Looking after the database: checks, backups, restores."""

import asyncio

from moorage.core.errors import Error
from moorage.service import faults
from moorage.service.audit import Actor, Audit
from moorage.service.index import Index
from moorage.service.transactor import Transactor
from moorage.store import check as check_store
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine


class Upkeep:
    """What an operator asks of a running service."""

    def __init__(self, engine: Engine, index: Index, transactor: Transactor, audit: Audit) -> None:
        self._engine = engine
        self._index = index
        self._transactor = transactor
        self._audit = audit

    async def check(self) -> list[str]:
        """Re-derive every sum, generation and tree from the rows, and the index from them too.

        Returns one sentence per difference; empty when all is well. The index is compared between
        two batches, so writes wait for as long as a snapshot takes to load; on a shared database
        the snapshot follows the change rows until it has caught up, and nobody waits. Raises
        `Error`: UNAVAILABLE.
        """
        known = self._index.fleet
        with faults.told():
            found = await self._engine.read_aside(
                check_store.differences_load(known.standard_classes, known.standard_traits)
            )
        if self._engine.shared:
            with faults.told():
                return found + await self._compared_by_revision()
        epoch, revision, changes = await self._transactor.run_alone(ledger_store.snapshot_load)
        if (epoch, revision) != (self._index.epoch, self._index.revision):
            found.append(
                f"the index is at revision {self._index.epoch}.{self._index.revision}, "
                f"the rows are at {epoch}.{revision}"
            )
        return found + self._index.fleet.differences(self._index.rebuilt(changes))

    async def _compared_by_revision(self) -> list[str]:
        epoch, revision, changes = await self._engine.read_aside(ledger_store.snapshot_load())
        fleet = await asyncio.to_thread(self._index.rebuilt, changes)
        await self._index.current()
        while revision < self._index.revision:
            upto = self._index.revision - revision
            tail = await self._engine.read(ledger_store.changes_load(revision, min(upto, 1_000)))
            if not tail.batches:
                return ["the change rows were forgotten meanwhile; check again"]
            for at, batch in tail.batches:
                fleet.apply(batch)
                revision = at
        if (epoch, revision) != (self._index.epoch, self._index.revision):
            return [f"the index is at revision {self._index.epoch}.{self._index.revision}"]
        return self._index.fleet.differences(fleet)

    async def backup(self, path: str, *, by: Actor) -> None:
        """Write a complete copy of the database to a new file while the service goes on.

        That `by` asked for it is written down before: nobody takes a copy unseen. If there is none
        in the end, that is written down, too.

        Raises `Error`: INVALID when there is such a file or none can be made, UNAVAILABLE.
        """
        await self._audit.record(by, "database.backup", path)
        try:
            with faults.told():
                await self._engine.backup(path)
        except Error as error:
            failed = {"reason": error.message}
            await self._audit.record(by, "database.backup_failed", path, after=failed)
            raise

    async def wipe(self) -> None:
        """Forget the whole ledger. For test servers only; the face that calls it sees to that."""
        await self._transactor.run_alone(ledger_store.wipe)
        await self._index.load()
