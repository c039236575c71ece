"""Those who wait for a ticket to be granted or to end: a future each, nothing else.

They are woken by what is committed here, and on a shared database by the change rows of the others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from moorage.service.cases import When
from moorage.service.claimants import Claimants
from moorage.service.watch import ChangesGoneError, Watch
from moorage.store.admission_rows import lease_from_change

RETRY_SECONDS = 1.0
"""How long to wait after a look at the change rows has failed."""

log = logging.getLogger("moorage.waiting")


class Waiting:
    """Futures by lease. More than one client may wait for the same."""

    def __init__(self, watch: Watch, claimants: Claimants, *, shared: bool) -> None:
        self._watch = watch
        self._claimants = claimants
        self.shared = shared
        self._futures: dict[LeaseId, set[asyncio.Future[Lease]]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many leases somebody waits for."""
        return len(self._futures)

    def start(self) -> None:
        """Begin to follow what other processes commit."""
        if self.shared:
            self._task = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """Let go of everybody who waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for futures in self._futures.values():
            for future in futures:
                if not future.done():
                    future.cancel()

    def expect(self, lease: LeaseId) -> asyncio.Future[Lease]:
        """Return what is set when the lease next changes. Expect first, then look, then wait."""
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(lease, set()).add(future)
        return future

    def forget(self, lease: LeaseId, future: asyncio.Future[Lease]) -> None:
        """Give back what `expect` has given."""
        future.cancel()
        futures = self._futures.get(lease)
        if futures is not None:
            futures.discard(future)
            if not futures:
                del self._futures[lease]

    def tell(self, leases: Iterable[Lease]) -> None:
        """Wake those who wait for these leases, if they do not wait in their line any more."""
        for lease in leases:
            if lease.state != "waiting" and lease.id in self._futures:
                for future in self._futures.pop(lease.id):
                    if not future.done():
                        future.set_result(lease)

    def note(self, changes: Changes, _when: When) -> None:
        """Wake those who wait for leases that were changed here."""
        leases = [lease for lease in changes.leases.values() if lease is not None]
        self.tell(leases)
        self._claimants.note(leases)

    async def _follow(self) -> None:
        """Read the leases of the change rows, as long as there are any; from now on."""
        cursor = None
        while True:
            try:
                if cursor is None:
                    cursor = await self._watch.now()
                window = await self._watch.awaited(cursor, ("lease",), seconds=60.0)
                cursor = window.next
                told = [
                    lease_from_change(seen.row.body)
                    for seen in window.changes
                    if seen.row.body is not None
                ]
                self.tell(told)
                self._claimants.note(told)
            except ChangesGoneError as gone:
                cursor = gone.oldest
            except Exception:  # whoever waits looks again at the end of its wait
                log.exception("following the leases of the other processes failed")
                await asyncio.sleep(RETRY_SECONDS)


async def either(
    future: asyncio.Future[Lease], seconds: float, gone: Callable[[], Awaitable[None]] | None
) -> bool:
    """Wait for a future, a time or the caller's going away; return whether it is still there."""
    if gone is None:
        await asyncio.wait([future], timeout=seconds)
        return True
    leaving = asyncio.ensure_future(gone())
    try:
        both: list[asyncio.Future[Any]] = [future, leaving]
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return not leaving.done()
    finally:
        leaving.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await leaving
