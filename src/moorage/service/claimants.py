"""Tickets that wait for capacity in the ledger: tried again when the ledger has changed."""

import asyncio
import logging
from collections.abc import Iterable

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from moorage.core.limits import PAGE_MAX
from moorage.service.cases import When
from moorage.service.leasing import Sweep
from moorage.service.lookout import Lookout
from moorage.service.transactor import Transactor
from moorage.service.wakeups import Bell

GATHER_SECONDS = 0.05
"""How long to wait after a change of the ledger, so that one trial answers for many."""

RETRY_SECONDS = 1.0

log = logging.getLogger("moorage.claimants")


class Claimants:
    """Which tickets want to hold something in the ledger, too. Call `note` with what changes."""

    def __init__(self, transactor: Transactor, lookout: Lookout, bell: Bell) -> None:
        self._transactor = transactor
        self._lookout = lookout
        self._bell = bell
        self._tickets: dict[LeaseId, frozenset[str]] = {}
        """The pools that each of them needs."""
        self._loaded = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to try again by itself, after a look at who waits already."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def reload(self) -> None:
        """Look anew who waits, before the next trial: changes were missed."""
        self._loaded = False

    def note(self, changes: Changes, _when: When) -> None:
        """Follow the tickets."""
        self._remember(lease for lease in changes.leases.values() if lease is not None)

    def _remember(self, leases: Iterable[Lease]) -> None:
        """Remember who waits with a wish for the ledger, and who does not any more."""
        for lease in leases:
            if lease.allocations is not None and lease.state == "waiting":
                self._tickets[lease.id] = frozenset(need.pool for need in lease.needs)
            else:
                self._tickets.pop(lease.id, None)

    async def _run(self) -> None:
        while True:
            ring = self._bell.listen()
            try:
                if not self._loaded:
                    self._loaded = True
                    await self._load()
                pools = frozenset().union(*self._tickets.values())
                if pools:
                    await self._transactor.submit_case(Sweep(pools=pools))
            except Exception:  # the database may be away; it is tried again
                self._loaded = False
                log.exception("trying those who wait for capacity failed")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await ring.wait()
            await asyncio.sleep(GATHER_SECONDS)
            if self._bell.closed:
                return

    async def _load(self) -> None:
        self._tickets.clear()
        cursor = None
        while True:
            views, cursor = await self._lookout.leases(cursor, PAGE_MAX, None, "waiting", None)
            self._remember(view.lease for view in views)
            if cursor is None:
                return
