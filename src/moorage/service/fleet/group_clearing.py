"""Clears what deleted groups of reporters have left: pins, and marks on providers, in small units.

Every process looks, so that what a process has begun is finished after its end. They may clear one
group together: each reads what is left and changes that only.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from moorage.core.fleet import deletion
from moorage.core.fleet.reporters import DeletedGroup
from moorage.core.ids import ProviderId
from moorage.service.background import Loop
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.fleet.reporter_cases import ClearUnit, ForgetDeleted
from moorage.service.ledger.bulk import UNIT_PROVIDERS
from moorage.store.api import Engine, Plan
from moorage.store.fleet import reads

PERIOD_SECONDS = 10.0
"""Time between two looks: another process may have been asked to delete a group, and have ended."""

PINS_AT_ONCE = 4 * UNIT_PROVIDERS
"""Pins that one transaction removes: about as much work as `UNIT_PROVIDERS` providers."""

WINDOW = 8 * PINS_AT_ONCE
"""Providers or pins that are read at once."""

log = logging.getLogger("moorage.reporters")


class GroupClearing:
    """Looks for deleted groups, at once if `soon` was called."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        service_clock: ServiceClock,
        turns: FairTurns,
        on_gone: Callable[[set[str]], None],
    ) -> None:
        """Create it.

        Args:
            engine: is read.
            transactor: executes the units.
            service_clock: says when a deletion is forgotten.
            turns: the units are taken in spare ones.
            on_gone: called with all names of deleted groups of which there is no other group.
        """
        self._engine = engine
        self._transactor = transactor
        self._service_clock = service_clock
        self._turns = turns
        self._on_gone = on_gone
        self._asked = asyncio.Event()
        self._loop = Loop(log, "cannot clear deleted groups of reporters", PERIOD_SECONDS)

    def start(self) -> None:
        """Start the loop."""
        self._loop.start(self.look, self._pause)

    async def stop(self) -> None:
        """Stop the loop; what is left is cleared after the next start."""
        await self._loop.stop()

    def soon(self) -> None:
        """Look at once."""
        self._asked.set()

    async def look(self) -> float:
        """Clear all deleted groups; return the seconds until the next look."""
        self._asked.clear()
        timeline, deleted = await self._engine.read(reads.deleted_load())
        moment = self._service_clock.estimate(timeline).moment
        self._on_gone({group.name for group, is_used_again in deleted if not is_used_again})
        for group, _ in deleted:
            if not group.cleared:
                await self._clear(group)
            elif deletion.is_forgotten(group, moment):
                await self._transactor.submit(ForgetDeleted(group))
        return PERIOD_SECONDS

    async def _clear(self, group: DeletedGroup) -> None:
        """Clear a group, of which nobody can set marks any more: no report is accepted."""
        pieces = Pieces(self._turns)
        marks = partial(reads.marked_window, group.name)
        pins = partial(reads.pinned_window, group.name)
        await self._each(marks, UNIT_PROVIDERS, pieces, lambda some: ClearUnit(group, marked=some))
        await self._each(pins, PINS_AT_ONCE, pieces, lambda some: ClearUnit(group, pinned=some))
        await self._transactor.submit(ClearUnit(group, last=True))
        log.info("the deleted group of reporters %s is cleared", group.name)

    async def _each(
        self,
        window: Callable[[str, int], Plan[list[ProviderId]]],
        size: int,
        pieces: Pieces,
        unit_of: Callable[[list[ProviderId]], ClearUnit],
    ) -> None:
        after = ""
        while found := await self._engine.read_aside(window(after, WINDOW)):
            for first in range(0, len(found), size):
                async with pieces.unit:
                    await pieces.rest()
                    await self._transactor.submit(unit_of(found[first : first + size]))
            after = found[-1]

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            return
