"""Periodic chores: without input, safe to repeat, and callable on demand.

The loop only calls them; nothing rests on when it does. Whatever grows with time alone is bounded
here, in pieces: each is a short transaction, in turn with the batches.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moorage.core.clock import DAY, Clock, Instant
from moorage.service.admission.service import Admission
from moorage.service.batch.transactor import Transactor
from moorage.store import changelog_compaction
from moorage.store.access.audit import audit_forget
from moorage.store.api import Engine, Plan
from moorage.store.receipts import FIRST, receipts_forget

CHANGES_KEPT_SECONDS = 15 * 60
"""Change rows younger than this are kept, unless there are too many, see `Keeping`."""

CHANGES_KEPT_ROWS = 1_000_000
"""At least as many of the newest change rows are kept."""

FORGET_MAX = 1_000
"""Audit rows or receipts that are forgotten in one transaction: about ten milliseconds."""

PERIOD_SECONDS = 60.0
"""Time between two rounds of all chores."""

log = logging.getLogger("moorage.chores")


class Keeping(NamedTuple):
    """How much is kept of what grows with time alone."""

    changes_min: int = CHANGES_KEPT_ROWS
    """So many of the newest change rows stay at least."""
    changes_max: int | None = None
    """Of more change rows the oldest go, however young they are; a setting. None: all stay."""
    audit_days: int | None = None
    """How long audit rows stay; a setting. None: for good."""


KEEP_BY_DEFAULT = Keeping()
"""For commands that open the database themselves: they do not know the settings of its server."""


class Chores:
    """What a service does by itself, beside its requests."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        clock: Clock,
        admission: Admission,
        keeping: Keeping = KEEP_BY_DEFAULT,
    ) -> None:
        """Take what there is to look after, and how much of it is kept."""
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self._chores: list[Callable[[], Awaitable[object]]] = [
            self.compact,
            self.forget_receipts,
            self.forget_audit,
            admission.forget,
            admission.look_unheard,
        ]
        self._keep = changelog_compaction.Keep(keeping.changes_min, keeping.changes_max)
        self._audit_days = keeping.audit_days
        self._began = clock.now(), clock.monotonic()
        self._receipts_after = FIRST
        self._task: asyncio.Task[None] | None = None

    def add(self, chore: Callable[[], Awaitable[object]]) -> None:
        """Do something in every round, too."""
        self._chores.append(chore)

    def start(self) -> None:
        """Begin to run all chores every `PERIOD_SECONDS`."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the loop; what a chore has begun in the transactor is finished there."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def compact(self) -> int:
        """Forget change rows that nobody needs any more; return the revision forgotten up to."""
        since = Instant(self._clock.now() - CHANGES_KEPT_SECONDS * 1_000_000)
        mark = await self._engine.read_aside(
            changelog_compaction.compaction_mark_load(since, self._keep), slow=True
        )

        def step() -> Plan[int]:
            return changelog_compaction.compact(mark)

        reached = await self._transactor.run_alone(step)
        while reached < mark:
            reached = await self._transactor.run_alone(step)
        return reached

    async def forget_audit(self) -> int:
        """Forget audit rows that are older than `audit_days`; return how many.

        By a clock that has not jumped since the service began, nor beyond the newest row.
        """
        if self._audit_days is None:
            return 0
        wall, then = self._began
        now = Instant(min(self._clock.now(), wall + self._clock.monotonic() - then))
        kept = self._audit_days * DAY
        total = 0
        while True:
            gone = await self._transactor.run_alone(lambda: audit_forget(now, kept, FORGET_MAX))
            total += gone
            if gone < FORGET_MAX:
                return total

    async def forget_receipts(self) -> int:
        """Forget receipts of transactions that nobody asks for any more; return how many."""
        if not self._engine.shared:
            return 0  # there are none
        total = 0
        while True:
            gone, self._receipts_after = await self._transactor.run_alone(
                lambda: receipts_forget(self._receipts_after, FORGET_MAX)
            )
            total += gone
            if gone < FORGET_MAX:
                return total

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            for chore in self._chores:
                try:
                    await chore()
                except Exception:  # the next round tries again; the service goes on meanwhile
                    log.exception("the chore %s failed", getattr(chore, "__name__", chore))
