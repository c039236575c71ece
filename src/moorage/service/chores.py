"""Periodic chores: without input, safe to repeat, and callable on demand.

The loop only calls them; nothing rests on when it does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moorage.core.clock import Clock, Instant
from moorage.service.admission import Admission
from moorage.service.transactor import Transactor
from moorage.store import ledger as ledger_store
from moorage.store.api import Engine, Plan

CHANGES_KEPT_SECONDS = 15 * 60
"""Change rows younger than this are kept."""

CHANGES_KEPT_ROWS = 1_000_000
"""At least as many of the newest change rows are kept."""

PERIOD_SECONDS = 60.0
"""Time between two rounds of all chores."""

log = logging.getLogger("moorage.chores")


class Chores:
    """What a service does by itself, beside its requests."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        clock: Clock,
        admission: Admission,
        *,
        changes_kept_rows: int = CHANGES_KEPT_ROWS,
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self._changes_kept_rows = changes_kept_rows
        self._chores: list[Callable[[], Awaitable[object]]] = [
            self.compact,
            admission.forget,
            admission.look_unheard,
        ]
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
            ledger_store.compaction_mark_load(since, self._changes_kept_rows), slow=True
        )

        def step() -> Plan[int]:
            return ledger_store.compact(mark)

        reached = await self._transactor.run_alone(step)
        while reached < mark:
            reached = await self._transactor.run_alone(step)
        return reached

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            for chore in self._chores:
                try:
                    await chore()
                except Exception:  # the next round tries again; the service goes on meanwhile
                    log.exception("the chore %s failed", getattr(chore, "__name__", chore))
