"""Looking after the database: checks, backups, restores."""

from moorage.service import faults
from moorage.service.index import Index
from moorage.service.transactor import Transactor
from moorage.store import check as check_store
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine


class Upkeep:
    """What an operator asks of a running service."""

    def __init__(self, engine: Engine, index: Index, transactor: Transactor) -> None:
        self._engine = engine
        self._index = index
        self._transactor = transactor

    async def check(self) -> list[str]:
        """Re-derive every sum, generation and tree from the rows, and the index from them too.

        Returns one sentence per difference; empty when all is well. The index is compared between
        two batches, so writes wait for as long as a snapshot takes to load. Raises `Error`:
        UNAVAILABLE.
        """
        known = self._index.fleet
        with faults.told():
            found = await self._engine.read_aside(
                check_store.differences_load(known.standard_classes, known.standard_traits)
            )
        rows = await self._transactor.run_alone(ledger_store.snapshot_load)
        epoch, revision, changes = rows
        if (epoch, revision) != (self._index.epoch, self._index.revision):
            found.append(
                f"the index is at revision {self._index.epoch}.{self._index.revision}, "
                f"the rows are at {epoch}.{revision}"
            )
        return found + self._index.fleet.differences(self._index.rebuilt(changes))

    async def backup(self, path: str) -> None:
        """Write a complete copy of the database to a new file while the service goes on.

        Raises `Error`: INVALID when there is such a file or none can be made, UNAVAILABLE.
        """
        with faults.told():
            await self._engine.backup(path)

    async def wipe(self) -> None:
        """Forget the whole ledger. For test servers only; the face that calls it sees to that."""
        await self._transactor.run_alone(ledger_store.wipe)
        await self._index.load()
