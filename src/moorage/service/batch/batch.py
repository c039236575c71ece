"""One batch in its transaction: load, decide each request in turn, let the rooms react, save.

All rooms share the transaction, so a lease and what it holds in the ledger come and go together.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from moorage.core.clock import Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.ledger.claims import CandidatesNeeded
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.import_mark import ImportChange
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.misfits import Misfits
from moorage.service.batch.rooms import Rooms
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys
from moorage.service.feed.import_mark import ImportMark
from moorage.service.ids import audit_id_new
from moorage.store import batch as batch_store
from moorage.store.access.audit import AuditRow
from moorage.store.api import Transaction
from moorage.store.import_mark import MarkChanged

BATCH_MAX = 64
"""Requests in one batch."""

FREED_SLOWLY = 1_000
"""Values from which on a dict is freed in a thread."""

SEARCHES_MAX = 2 * BATCH_MAX
"""Most searches for one claim. The first claim of a batch finds what no other can take before it:
within one process each claim is served in turn, but peers may be faster again and again."""

log = logging.getLogger("moorage.transactor")


@dataclass(slots=True)
class Item:
    """One waiting request."""

    future: asyncio.Future[Any]
    work: UseCase[Any]
    keys: Keys
    refusal: Exception | None = None
    answer: Any = None
    searches: int = 0
    again: bool = False
    """Whether to search for it again, in the next batch."""

    def settle(self) -> None:
        """Answer the caller, unless it has gone away."""
        if self.future.done():
            return
        if self.refusal is not None:
            self.future.set_exception(self.refusal)
        else:
            self.future.set_result(self.answer)

    def fail(self, error: Exception) -> None:
        """Answer the caller that nothing was saved."""
        self.refusal = error
        self.settle()


@dataclass(slots=True)
class Made:
    """The writes of a batch, before the commit."""

    changes: Changes
    """The merged changes of each room; None: the batch did not touch it."""
    when: When
    written: bool = False
    epoch: int = 0
    revision: int | None = None
    """None: followers need not know."""
    rows: list[AuditRow] = field(default_factory=list)
    """The audit rows among what was written."""


class Batches:
    """Carries out batches, each in the transaction that it is given."""

    def __init__(
        self,
        clock: Clock,
        service_clock: ServiceClock,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
        mark: ImportMark | None = None,
    ) -> None:
        self._mark = ImportMark() if mark is None else mark
        self._clock = clock
        self._classes = standard_classes
        self._traits = standard_traits
        self._service_clock = service_clock
        self.misfits = Misfits()
        self._last = Instant(0)
        """The stamp after the last decision."""

    async def run(self, items: list[Item], extra: ExtraLoads, transaction: Transaction) -> Made:
        """Load, decide and save; the caller commits.

        Raises StoreError; Restart: run the batch again with its needs added to `extra`.
        """
        empty = Facts(self._classes, self._traits)
        rooms = Rooms(empty, _union(items), extra, self.misfits, importing=self._mark.may_stand)
        asked = self._service_clock.monotonic()
        await transaction.run(rooms.load(), aside=rooms.ledger.large)
        when, late = self._times(rooms, asked, transaction.now)
        if rooms.ledger.large:  # nothing else uses its facts
            await asyncio.to_thread(_decide_all, items, rooms, when)
        else:
            _decide_all(items, rooms, when)
        self._last = rooms.ledger.stamp
        if rooms.admission is not None:
            await transaction.run(rooms.admission.after())
        if not items[0].work.alone or _is_saved(items[0], rooms, when):
            made = await self._save(items, rooms, when, transaction, late=late)
        else:
            made = Made(Changes(), when)
        for item in items:
            if item.refusal is None:
                _conclude(item, rooms, when)
        if rooms.ledger.large:
            await forget(*rooms.ledger.leftovers)
        return made

    def _times(self, rooms: Rooms, asked: int, now: Instant | None) -> tuple[When, bool]:
        """Return the time of a batch, and whether it must be saved even if nothing else changes.

        The time is the database's if known; a stamp is later than all before.
        """
        wall = self._clock.now() if now is None else now
        stamp = Instant(max(self._last + 1, wall))
        stored, late = rooms.world.timeline, False
        if stored is None:
            when = self._service_clock.present(wall, stamp)
        else:
            timeline, moment = self._service_clock.read(stored, wall, asked)
            rooms.world.timeline, when = timeline, When(moment, wall, stamp)
            late = self._service_clock.must_save(stored, timeline)
        return when, late

    async def _save(
        self, items: list[Item], rooms: Rooms, when: When, transaction: Transaction, *, late: bool
    ) -> Made:
        ledger = rooms.ledger.changes
        admission = None if rooms.admission is None else rooms.admission.changes
        fleet = None if rooms.fleet is None else rooms.fleet.changes
        made = Made(Changes(ledger, admission, fleet), when)
        imports = None if rooms.imports is None else rooms.imports.part()
        if imports is not None and imports.is_published:
            made.changes.imports = ImportChange(imports.after)
        now = when.stamp
        for item in items:
            if item.refusal is None:
                for row in item.work.audit(now):
                    made.rows.append(row if row.id else row._replace(id=audit_id_new()))
        if rooms.admission is not None and rooms.admission.rows:
            own = rooms.admission.rows
            made.rows += [row._replace(id=audit_id_new()) for row in own]
        if not (ledger or admission or fleet or made.changes.imports or made.rows or late):
            return made
        parts = [room.part() for room in rooms.all]
        try:
            raised = await transaction.run(
                batch_store.batch_save(
                    parts,
                    made.rows,
                    now,
                    rooms.world.timeline,
                    mark=None if imports is None else imports.after,
                    minds_mark=bool(ledger),
                ),
                aside=rooms.ledger.large,
            )
        except MarkChanged:
            self._mark.doubt()
            raise
        made.written = True
        if raised is not None:
            made.epoch, made.revision = raised
        return made


def _union(items: list[Item]) -> Keys:
    keys = Keys()
    for item in items:
        keys.update(item.keys)
    return keys


async def forget(*values: dict[Any, Any]) -> None:
    """Free many values in a thread, one by one: freeing them at once would hold the GIL."""

    def one_by_one(some: dict[Any, Any]) -> None:
        while some:
            some.popitem()

    for some in values:
        if len(some) > FREED_SLOWLY:
            await asyncio.to_thread(one_by_one, some)


def _decide_all(items: list[Item], rooms: Rooms, when: When) -> None:
    """Decide one request after another; each sees the changes of those before it."""
    rooms.begin(when)
    for item in items:
        made = _decided(item, rooms, When(when.moment, when.wall, rooms.ledger.stamp))
        if made is not None:
            rooms.decided(made)


def _decided(item: Item, rooms: Rooms, when: When) -> Changes | None:
    """Decide one request; return its changes, None if it is refused or must be decided again."""
    item.refusal, item.again = None, False
    imports = rooms.imports
    if imports is not None:
        item.refusal = imports.refusal(item.work, item.keys)
        if item.refusal is not None:
            return None
    try:
        made = item.work.decide(rooms.world, when)
        if imports is not None:
            imports.check(item.work, made)
        return made
    except Error as refusal:
        item.refusal = refusal.with_traceback(None)  # it would refer to the item
    except Restart as restart:
        if not isinstance(restart.needs, CandidatesNeeded):
            raise
        item.searches += 1
        item.again = item.searches < SEARCHES_MAX
        item.refusal = Error(
            Code.OVERLOADED,
            f"Other clients took the capacity that was found {item.searches}"
            f" times; try again later.",
        )
    except Exception as fault:  # a fault in one decision must not take the others down
        log.exception("cannot decide a request of type %r", type(item.work).__name__)
        item.refusal = fault
    return None


def _is_saved(alone: Item, rooms: Rooms, when: When) -> bool:
    """Ask a request that is alone whether to save what its batch has made."""
    if alone.refusal is not None or alone.again:
        return True
    try:
        return alone.work.review(rooms.made, rooms.world, when)
    except Error as refusal:
        alone.refusal = refusal.with_traceback(None)
        return False


def _conclude(item: Item, rooms: Rooms, when: When) -> None:
    """Set the answer of a request that was not refused."""
    try:
        item.answer = item.work.conclude(rooms.world, when)
    except Error as refusal:
        item.refusal = refusal.with_traceback(None)
