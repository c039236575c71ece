"""Periodic chores: without input, safe to repeat, and callable on demand.

Nothing depends on when the loop calls them. They delete old data, so that the database does not
grow with time alone: in pieces, each a short transaction between the batches.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from moorage.core.clock import DAY, SECOND, Clock, Instant
from moorage.core.limits import LEASES_KEPT_HOURS
from moorage.service.admission.ended import EndedKept
from moorage.service.admission.service import Admission
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.ledger.stock_metrics import Stock
from moorage.store import changelog_compaction
from moorage.store.access.audit import audit_beginning, audit_forget
from moorage.store.api import Engine, Plan
from moorage.store.ledger.reshapes import reshapes_forget
from moorage.store.receipts import FIRST, receipts_forget

CHANGES_KEPT_SECONDS = 15 * 60
"""Younger change rows are kept, unless there are too many, see `Retention`."""

CHANGES_KEPT_ROWS = 1_000_000
"""At least this many of the newest change rows are kept."""

FORGET_MAX = 1_000
"""Audit rows or receipts that one transaction deletes: about ten milliseconds."""

RESHAPES_FORGET_MAX = 4
"""Reshapes that one transaction deletes: each may have some megabytes."""

PERIOD_SECONDS = 60.0
"""Time between two rounds of all chores."""

log = logging.getLogger("moorage.chores")


class Retention(NamedTuple):
    """How much is kept of the data that grows with time."""

    changes_min: int = CHANGES_KEPT_ROWS
    """At least this many of the newest change rows are kept."""
    changes_max: int | None = None
    """Beyond this many change rows the oldest are deleted at any age; a setting. None: no limit."""
    changes_bytes_max: int | None = None
    """Beyond this size the oldest change rows are deleted at any age; a setting. None: no limit."""
    audit_days: int | None = None
    """How long audit rows are kept; a setting. None: forever."""
    ended_leases_hours: int | None = LEASES_KEPT_HOURS
    """How long ended leases are kept; a setting. None: forever."""
    ended_leases_max: int | None = None
    """Beyond this many ended leases the oldest are deleted earlier; a setting. None: no limit."""

    ended_leases_bytes_max: int | None = None
    """The same of their size in the database, in bytes; a setting. None: no limit."""

    @property
    def ended(self) -> EndedKept:
        """How much is kept of leases that have ended."""
        hours, most = self.ended_leases_hours, self.ended_leases_max
        return EndedKept(hours, most, self.ended_leases_bytes_max)


RETENTION_BY_DEFAULT = Retention()
"""For commands that open the database themselves and do not know its server's settings."""


class Chores:
    """The periodic work of a service."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        clock: Clock,
        admission: Admission,
        stock: Stock,
        retention: Retention = RETENTION_BY_DEFAULT,
    ) -> None:
        """Create the chores; `retention` is how much data they keep."""
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self.stock = stock
        """The sums for metrics."""
        self._chores: list[Callable[[], Awaitable[object]]] = [
            self.compact,
            self.forget_receipts,
            self.forget_audit,
            self.forget_reshapes,
            admission.forget,
            admission.look_at_pools,
            self.stock.look,
        ]
        self.changelog = changelog_compaction.ChangelogRetention(
            retention.changes_min, retention.changes_max, retention.changes_bytes_max
        )
        """How many change rows are kept, and how large they are."""
        self._audit_days = retention.audit_days
        self._began = clock.now(), clock.monotonic()
        self._receipts_after = FIRST
        self._begun = False
        self._loop = Loop(log, "a round of chores failed", PERIOD_SECONDS)

    def add(self, *chores: Callable[[], Awaitable[object]]) -> None:
        """Add chores."""
        self._chores += chores

    def start(self) -> None:
        """Start to run all chores every `PERIOD_SECONDS`; what only metrics need, at once."""
        self._loop.start(self._round)

    async def stop(self) -> None:
        """Stop the loop; work that a chore has submitted to the transactor is finished there."""
        await self._loop.stop()

    async def compact(self) -> int:
        """Delete change rows that are no longer needed; return the revision deleted up to."""
        since = Instant(self._clock.now() - CHANGES_KEPT_SECONDS * SECOND)
        mark = await self._engine.read_aside(
            changelog_compaction.compaction_mark_load(since, self.changelog), slow=True
        )

        def step() -> Plan[int]:
            return changelog_compaction.compact(mark)

        reached = await self._transactor.submit(RunPlan(step))
        while reached < mark:
            reached = await self._transactor.submit(RunPlan(step))
        return reached

    async def forget_audit(self) -> int:
        """Delete audit rows that are older than `audit_days`; return how many.

        Forward jumps of the clock since the start are ignored, and so is time after the newest row.
        """
        if self._audit_days is None:
            return 0
        now, kept = self._steady_now(), self._audit_days * DAY
        total = 0
        while True:
            plan = RunPlan(lambda: audit_forget(now, kept, FORGET_MAX))
            gone = await self._transactor.submit(plan)
            total += gone
            if gone < FORGET_MAX:
                return total

    async def forget_reshapes(self) -> int:
        """Delete reshapes that are older than the audit rows that are kept; return how many."""
        if self._audit_days is None:
            return 0
        before = await self._engine.read(
            audit_beginning(self._steady_now(), self._audit_days * DAY)
        )
        total = 0
        while before is not None:
            plan = RunPlan(partial(reshapes_forget, before, RESHAPES_FORGET_MAX))
            gone = await self._transactor.submit(plan)
            total += gone
            if gone < RESHAPES_FORGET_MAX:
                break
        return total

    def _steady_now(self) -> Instant:
        """Return the time without forward jumps of the clock since the start."""
        wall, then = self._began
        return Instant(min(self._clock.now(), wall + self._clock.monotonic() - then))

    async def forget_receipts(self) -> int:
        """Delete receipts of transactions that are no longer needed; return how many."""
        if not self._engine.shared:
            return 0  # only shared databases have receipts
        total = 0
        while True:
            plan = RunPlan(lambda: receipts_forget(self._receipts_after, FORGET_MAX))
            gone, self._receipts_after = await self._transactor.submit(plan)
            total += gone
            if gone < FORGET_MAX:
                return total

    async def _round(self) -> float:
        if not self._begun:
            self._begun = True
            await self._run(self.stock.look)
        await asyncio.sleep(PERIOD_SECONDS)  # first: no other is urgent at the start
        for chore in self._chores:
            await self._run(chore)
        return 0.0

    async def _run(self, chore: Callable[[], Awaitable[object]]) -> None:
        try:
            await chore()
        except Exception:  # the other chores run all the same; the next round tries again
            log.exception("the chore %s failed", getattr(chore, "__name__", chore))
