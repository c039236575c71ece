"""Those who wait for a ticket to be granted or to end: a future each, nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.service.cases import When


class Waiting:
    """Futures by lease. More than one client may wait for the same."""

    def __init__(self) -> None:
        self._futures: dict[LeaseId, set[asyncio.Future[Lease]]] = {}
        self._latest: dict[LeaseId, Instant] = {}
        """Until when one of those who wait here has said to do so, whether or not it has gone."""
        self._closed = False

    @property
    def count(self) -> int:
        """How many leases somebody waits for."""
        return len(self._futures)

    @property
    def expected(self) -> list[LeaseId]:
        """The leases that somebody waits for."""
        return [*self._futures]

    def close(self) -> None:
        """Let go of everybody who waits, now and ever after: the service is ending."""
        self._closed = True
        for futures in self._futures.values():
            for future in futures:
                if not future.done():
                    future.cancel()

    def expect(self, lease: LeaseId, until: Instant) -> asyncio.Future[Lease]:
        """Return what is set when the lease next changes. Expect first, then look, then wait.

        Args:
            lease: a ticket.
            until: alive time until which it is heard of because of who waits now.
        """
        self._latest[lease] = max(until, self._latest.get(lease, until))
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.cancel()
        self._futures.setdefault(lease, set()).add(future)
        return future

    def forget(self, lease: LeaseId, future: asyncio.Future[Lease]) -> Instant | None:
        """Give back what `expect` has given.

        Returns, if nobody else waits for it here, until when those who did have said to.
        """
        future.cancel()
        futures = self._futures.get(lease, set())
        futures.discard(future)
        if futures:
            return None
        self._futures.pop(lease, None)
        return self._latest.pop(lease, None)

    def note(self, changes: Changes, _when: When) -> None:
        """Wake those whose ticket does not wait in its line any more."""
        for lease in changes.leases.values():
            if lease is not None and lease.state != "waiting":
                for future in self._futures.pop(lease.id, ()):
                    if not future.done():
                        future.set_result(lease)


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
