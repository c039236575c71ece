"""Imports of another ledger: begin, write rows, finish, abort; and the rows as they are kept.

While an import is under way, every other change of the ledger is refused: `service/batch/` decides
that for all requests (`import_room.py`).
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import uuid4

from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId
from moorage.core.ledger import import_mark, imported_rows
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.import_mark import (
    MARK_TARGET,
    Beginning,
    ImportChange,
    ImportKeys,
    RowCounts,
)
from moorage.core.ledger.imported_rows import Rows
from moorage.core.ledger.model import Consumer, CustomName, Described, Import
from moorage.core.limits import IMPORT_ROWS_MAX
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.extra_loads import TreesNeeded
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import AuditedUseCase, LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed.peer_changes import PeerChanges
from moorage.service.pages import page_of, rows_to_read
from moorage.store.api import Engine
from moorage.store.ledger import reads


@dataclass(slots=True)
class _MarkCase(AuditedUseCase[Import]):
    """A request that changes the mark alone. Answer: the import that began or ended."""

    by: Actor
    alone: ClassVar[bool] = True
    imports: ClassVar[bool] = True
    mark: Import = field(init=False, repr=False, compare=False)

    def keys(self) -> Keys:
        return Keys(imports=ImportKeys(alone=True))

    def conclude(self, world: World, when: When) -> Import:
        return self.mark

    def _note(self, when: When, verb: str, counts: RowCounts) -> None:
        """Leave an audit row with the number of rows."""
        after = {
            "source": self.mark.source,
            "classes": counts.classes,
            "traits": counts.traits,
            "providers": counts.providers,
            "consumers": counts.consumers,
        }
        self.rows = [audit_entry(when.stamp, self.by, f"import.{verb}", MARK_TARGET, after=after)]


@dataclass(slots=True)
class ImportBegin(_MarkCase):
    """Begin to import into the empty ledger, or resume the import of the same source."""

    wanted: Beginning

    def decide(self, world: World, when: When) -> Changes:
        """Return the mark. Raises IMPORT_EXISTS, IMPORT_NOT_FOUND, LEDGER_IN_USE, INVALID."""
        self.rows = []
        facts = world.imports
        assert facts is not None
        change, self.mark = import_mark.begin(facts, when.stamp, self.wanted, self.by.who)
        if facts.mark is None:
            self._note(when, "begin", facts.counts or RowCounts())
        return Changes(imports=change)


@dataclass(slots=True)
class ImportFinish(_MarkCase):
    """End the import: from now on the ledger is used."""

    writer: str | None = None

    def decide(self, world: World, when: When) -> Changes:
        """Remove the mark. Raises IMPORT_NOT_FOUND, IMPORT_TAKEN."""
        facts = world.imports
        assert facts is not None
        assert facts.counts is not None
        self.mark = import_mark.written_by(facts, self.writer)
        self._note(when, "finish", facts.counts)
        return Changes(imports=ImportChange(None))


@dataclass(slots=True)
class ImportAbort(_MarkCase):
    """End the import of which its writer has deleted all rows again; `deleted` were there."""

    deleted: RowCounts
    writer: str

    def decide(self, world: World, when: When) -> Changes:
        """Remove the mark. Raises IMPORT_NOT_FOUND, IMPORT_TAKEN, LEDGER_IN_USE."""
        facts = world.imports
        assert facts is not None
        self.mark = import_mark.written_by(facts, self.writer)
        if facts.counts:
            raise Error(Code.LEDGER_IN_USE, "There are rows again.")
        self._note(when, "abort", self.deleted)
        return Changes(imports=ImportChange(None))


@dataclass(slots=True)
class RowsWrite(LedgerUseCase[None]):
    """Write and delete rows of the ledger that is imported."""

    wanted: Rows
    writer: str | None = None
    alone: ClassVar[bool] = True
    imports: ClassVar[bool] = True

    @property
    def large(self) -> bool:
        """Whether its keys are made in a thread: always."""
        return True

    def keys(self) -> Keys:
        """Name all rows, and what they refer to."""
        return Keys(imported_rows.keys_for(self.wanted), imports=ImportKeys())

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes. Raises Restart: the trees of moved providers are needed."""
        assert world.imports is not None
        import_mark.written_by(world.imports, self.writer)
        facts = world.ledger
        trees = imported_rows.moved_trees(facts, self.wanted)
        if not trees <= facts.loaded.trees:
            raise Restart(TreesNeeded(LedgerKeys(trees=trees)))
        return self.decided(imported_rows.write(facts, self.wanted), None)


class Imports:
    """The import that is under way, and the rows of the ledger."""

    def __init__(
        self, engine: Engine, transactor: Transactor, feed: PeerChanges, turns: FairTurns
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._feed = feed
        self._turns = turns

    @property
    def shown(self) -> Import | None:
        """The import that is under way, as far as this process knows; None: there is none."""
        return self._feed.mark.shown

    async def under_way(self) -> Import:
        """Return the import that is under way. Raises `Error`: IMPORT_NOT_FOUND, UNAVAILABLE."""
        with errors.translated():
            await self._feed.caught_up()
        mark = self.shown
        if mark is None:
            raise import_mark.not_found()
        return mark

    async def begin(self, wanted: Beginning, by: Actor) -> Import:
        """Begin an import, or resume it.

        Raises `Error`: IMPORT_EXISTS, IMPORT_NOT_FOUND, LEDGER_IN_USE, INVALID.
        """
        return await self._transactor.submit(ImportBegin(by, wanted))

    async def write(self, rows: Rows, writer: str | None = None) -> None:
        """Write rows, all or nothing.

        Raises `Error`: IMPORT_NOT_FOUND, IMPORT_TAKEN, and those of `core/ledger/imported_rows.py`.
        """
        await asyncio.to_thread(imported_rows.check_rows, rows)
        async with self._turns.unit:
            await self._transactor.submit(RowsWrite(rows, writer))

    async def finish(self, by: Actor, writer: str | None = None) -> None:
        """End the import. Raises `Error`: IMPORT_NOT_FOUND, IMPORT_TAKEN."""
        await self._transactor.submit(ImportFinish(by, writer))

    async def abort(self, by: Actor) -> None:
        """Delete all rows, some at a time, then end the import. Raises `Error`: IMPORT_NOT_FOUND.

        If it is interrupted, the import is still under way: abort it again, or resume it. Raises
        IMPORT_TAKEN: somebody has done so meanwhile.
        """
        mark = await self.under_way()
        writer = f"abort {uuid4()}"  # from here on nobody else writes rows
        await self.begin(Beginning(mark.source, writer, resumes=True), by)
        deleted: Counter[str] = Counter()
        while (gone := await self._next_rows()) is not None:
            await self.write(gone, writer)
            deleted["classes"] += len(gone.gone_classes)
            deleted["traits"] += len(gone.gone_traits)
            deleted["providers"] += len(gone.gone_providers)
            deleted["consumers"] += len(gone.gone_consumers)
        await self._transactor.submit(ImportAbort(by, RowCounts(**deleted), writer))

    async def _next_rows(self) -> Rows | None:
        """Return rows to delete, of one kind that others no longer need; None: there are none."""
        with errors.translated():
            _, consumers = await self._engine.read_aside(
                reads.consumer_rows_window("", IMPORT_ROWS_MAX)
            )
            if consumers:
                return Rows(gone_consumers=frozenset(one.uuid for one in consumers))
            leaves = await self._engine.read_aside(reads.provider_leaves_window(IMPORT_ROWS_MAX))
            if leaves:
                return Rows(gone_providers=frozenset(leaves))
            _, classes = await self._engine.read_aside(reads.classes_window("", IMPORT_ROWS_MAX))
            if classes:
                return Rows(gone_classes=frozenset(one.name for one in classes))
            _, traits = await self._engine.read_aside(reads.traits_window("", IMPORT_ROWS_MAX))
            if traits:
                return Rows(gone_traits=frozenset(one.name for one in traits))
        return None

    async def names(
        self, kind: str, after: str, limit: int
    ) -> tuple[str, list[CustomName], str | None]:
        """Return the revision, custom names after one, and the last of them if more follow.

        `kind`: `classes` or `traits`. Raises `Error`: INVALID, UNAVAILABLE; so do the others.
        """
        window = reads.classes_window if kind == "classes" else reads.traits_window
        with errors.translated():
            revision, found = await self._engine.read_aside(window(after, rows_to_read(limit)))
        return revision, *page_of(found, limit, lambda one: one.name)

    async def providers(self, after: str, limit: int) -> tuple[str, list[Described], str | None]:
        """Return the revision, providers after a UUID, and the last one if more follow."""
        window = reads.provider_rows_window(after, rows_to_read(limit))
        with errors.translated():
            revision, found = await self._engine.read_aside(window)
        return revision, *page_of(found, limit, lambda one: one[0].uuid)

    async def consumers(
        self, after: ConsumerId, limit: int
    ) -> tuple[str, list[Consumer], str | None]:
        """Return the revision, consumers after a UUID, and the last one if more follow."""
        window = reads.consumer_rows_window(after, rows_to_read(limit))
        with errors.translated():
            revision, found = await self._engine.read_aside(window)
        return revision, *page_of(found, limit, lambda one: one.uuid)

    def pieces(self) -> Pieces:
        """Return turns for long work on rows."""
        return Pieces(self._turns)
