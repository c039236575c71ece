"""One batch in its transaction: load, decide each request in turn, grant leases, save.

Ledger and admission share the transaction, so a lease and what it holds in the ledger come and go
together. The order of locks is the ledger's rows, then admission's one, then the revision.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.clock import Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.ledger.claims import SearchAgain
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.service.batch.granting import Extra, Granting, LedgerShare, NeedsLedgerError
from moorage.service.batch.misfits import Obstacles
from moorage.service.batch.service_time import Chronometer
from moorage.service.batch.use_case import AdmissionCase, UseCase
from moorage.store import batch as batch_store
from moorage.store.access.audit import AuditRow
from moorage.store.admission import load
from moorage.store.api import Plan, Transaction
from moorage.store.ledger import load as ledger_load
from moorage.store.ledger import save as ledger_save

BATCH_MAX = 64
"""Requests in one batch."""

LARGE = 1_000
"""Rows from which on a batch is decided in a thread: about twenty milliseconds of work."""

SEARCHES_MAX = 2 * BATCH_MAX
"""Most searches for one claim. The first claim of a batch finds what no other can take before it:
within one process each claim is served in turn, but peers may be faster again and again."""

A = TypeVar("A")
P = ParamSpec("P")

log = logging.getLogger("moorage.transactor")


@dataclass(slots=True)
class Item:
    """One waiting request: a use case, or a plan that runs in a transaction of its own."""

    future: asyncio.Future[Any]
    use_case: UseCase[Any] | None = None
    case: AdmissionCase[Any] | None = None
    plan: Callable[[], Plan[Any]] | None = None
    keys: Keys = field(default_factory=Keys)
    """Keys of the ledger."""
    refusal: Exception | None = None
    answer: Any = None
    searches: int = 0
    again: bool = False
    """Whether to search for it again, in the next batch."""

    @property
    def alone(self) -> bool:
        """Whether it must be the only request of its batch."""
        one = self.use_case or self.case
        return one is None or one.alone

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return the audit rows of the decision; none if the request was refused."""
        one = self.use_case or self.case
        return one.audit(now) if one is not None and self.refusal is None else []

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
    """What a batch has written, before the commit. `revision` is None: followers need not know."""

    ledger: Changes
    granting: Granting | None
    """Admission's share; None: the batch has none."""
    revision: int | None
    at: Instant
    written: bool
    epoch: int = 0
    """Of the revision."""
    rows: list[AuditRow] = field(default_factory=list)
    """The audit rows among what was written."""


class Batches:
    """Carries out batches, each in the transaction that it is given."""

    def __init__(
        self,
        clock: Clock,
        chronometer: Chronometer,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
    ) -> None:
        self._clock = clock
        self._classes = standard_classes
        self._traits = standard_traits
        self._chronometer = chronometer
        self.obstacles = Obstacles()
        self._last = Instant(0)

    async def run(self, items: list[Item], extra: Extra, transaction: Transaction) -> Made:
        """Load, decide and save; the caller commits.

        Raises StoreError; NeedsLedgerError: run the batch again with its keys added to `extra`.
        """
        keys = _union(items, extra.keys)
        # To look for uses of a word takes a look at every provider.
        large = len(keys) > LARGE or bool(keys.class_uses or keys.trait_uses)
        facts = await transaction.run(
            ledger_load.facts_load(keys, self._classes, self._traits), aside=large
        )
        large = large or len(facts.providers) + len(facts.consumers) > LARGE
        before = await _worked(large, ledger_save.before_of, facts)
        changes = Changes()
        now = self._now(transaction.now)
        granting = await self._granting(items, facts, keys, extra, now, transaction)
        self._last = await _worked(large, _decide_all, items, facts, changes, now, granting)
        if granting is not None:
            await transaction.run(granting.grant(extra.lines))
            granting.finish()
            changes.update(granting.ledger.fetched())
        made = await self._save(items, before, changes, granting, now, transaction, large)
        if granting is not None:
            for item in items:
                _conclude(item, granting)
        await forget(before.consumers, facts.consumers)
        return made

    async def _save(
        self,
        items: list[Item],
        before: ledger_save.Before,
        changes: Changes,
        granting: Granting | None,
        now: Instant,
        transaction: Transaction,
        large: bool,
    ) -> Made:
        facts = None if granting is None else granting.facts
        granted = AdmissionChanges() if granting is None else granting.changes
        if not (changes or granted):
            return Made(changes, granting, None, now, written=False)
        rows = [row for item in items for row in item.audit(now)]
        told = await transaction.run(
            batch_store.batch_save(before, changes, facts, granted, rows, now), aside=large
        )
        epoch, revision = (0, None) if told is None else told
        return Made(changes, granting, revision, now, written=True, epoch=epoch, rows=rows)

    async def _granting(
        self,
        items: list[Item],
        facts: Facts,
        keys: Keys,
        extra: Extra,
        now: Instant,
        transaction: Transaction,
    ) -> Granting | None:
        asked = AdmissionKeys()
        cases = [item.case for item in items if item.case is not None]
        if not cases:
            return None
        for case in cases:
            asked.update(case.keys())
        began = self._chronometer.monotonic()
        loaded = await transaction.run(load.facts_load(asked))
        wall = self._clock.now() if transaction.now is None else transaction.now
        share = LedgerShare(facts, keys, extra, loaded, now, self.obstacles)
        return Granting.begun(loaded, self._chronometer, wall, began, share)

    def _now(self, told: Instant | None) -> Instant:
        """Return the time of a batch: the database's if known, always later than the last batch."""
        return Instant(max(self._last + 1, self._clock.now() if told is None else told))


def _union(items: list[Item], extra: Keys) -> Keys:
    if len(items) == 1 and not extra and items[0].case is None:
        return items[0].keys
    keys = Keys()
    keys.update(extra)
    for item in items:
        keys.update(item.keys)
    return keys


async def _worked(large: bool, work: Callable[P, A], *args: P.args, **more: P.kwargs) -> A:
    """Run a step of a batch; of a large one in a thread, since nothing else uses its facts."""
    if large:
        return await asyncio.to_thread(work, *args, **more)
    return work(*args, **more)


async def forget(*values: dict[Any, Any]) -> None:
    """Free many values in a thread, one by one: freeing them at once would hold the GIL."""

    def one_by_one(some: dict[Any, Any]) -> None:
        while some:
            some.popitem()

    for some in values:
        if len(some) > LARGE:
            await asyncio.to_thread(one_by_one, some)


def _decide_all(
    items: list[Item], facts: Facts, changes: Changes, now: Instant, granting: Granting | None
) -> Instant:
    """Decide one request after the other; return the time of the last one."""
    for item in items:
        now = _decide(item, facts, changes, now, granting)
    return now


def _decide(
    item: Item, facts: Facts, changes: Changes, now: Instant, granting: Granting | None
) -> Instant:
    """Decide one request; return the time of the next one."""
    item.refusal, item.again = None, False
    try:
        if item.case is not None:
            assert granting is not None
            granting.decide(item.case)
            changes.update(granting.ledger.fetched())
            return now
        assert item.use_case is not None
        made, item.answer = item.use_case.decide(facts, now)
    except Error as refusal:
        item.refusal = refusal.with_traceback(None)  # it would refer to the item
    except SearchAgain:
        item.searches += 1
        item.again = item.searches < SEARCHES_MAX
        item.refusal = Error(
            Code.OVERLOADED, f"Others were faster {item.searches} times; try again later."
        )
    except NeedsLedgerError:
        raise
    except Exception as fault:  # a fault in one decision must not take the others down
        if item.case is not None:
            raise  # it may have given back half of what leases held: all are tried one by one
        log.exception(
            "cannot decide a request of type %r", type(item.use_case or item.case).__name__
        )
        item.refusal = fault
    else:
        facts.apply(made)
        changes.update(made)
        return Instant(now + made.instants)
    return now


def _conclude(item: Item, granting: Granting) -> None:
    """Draw the answer of a case that was decided."""
    if item.case is None or item.refusal is not None:
        return
    try:
        item.answer = item.case.conclude(granting.facts, granting.when)
    except Error as refusal:
        item.refusal = refusal.with_traceback(None)
