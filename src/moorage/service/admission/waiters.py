"""Those who wait for a grant, or for an end: a future each, nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import When


class Waiting:
    """Futures by lease. More than one client may wait for the same."""

    def __init__(self) -> None:
        self._futures: dict[LeaseId, set[asyncio.Future[Lease]]] = {}
        self._latest: dict[LeaseId, Instant] = {}
        """Until when one of those who wait here has said to do so, whether or not it has gone."""
        self._ends: dict[LeaseId, set[asyncio.Future[Lease]]] = {}
        """Futures of those who wait for an end and nothing else."""
        self._closed = False

    @property
    def count(self) -> int:
        """How many leases somebody waits for."""
        return len(self._futures.keys() | self._ends.keys())

    @property
    def expected(self) -> list[LeaseId]:
        """The leases that somebody waits for."""
        return [*(self._futures.keys() | self._ends.keys())]

    def close(self) -> None:
        """Let go of everybody who waits, now and ever after: the service is ending."""
        self._closed = True
        for futures in (*self._futures.values(), *self._ends.values()):
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

    def expect_end(self, lease: LeaseId) -> asyncio.Future[Lease]:
        """Return what is set when the lease ends. Expect first, then look, then wait."""
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.cancel()
        self._ends.setdefault(lease, set()).add(future)
        return future

    def forget_end(self, lease: LeaseId, future: asyncio.Future[Lease]) -> None:
        """Give back what `expect_end` has given."""
        future.cancel()
        futures = self._ends.get(lease, set())
        futures.discard(future)
        if not futures:
            self._ends.pop(lease, None)

    def note(self, changes: Changes, _when: When) -> None:
        """Wake those whose ticket does not wait in its line any more, or whose lease has ended."""
        for lease in changes.leases.values():
            if lease is None or lease.state == "waiting":
                continue
            woken = self._futures.pop(lease.id, set())
            if lease.state == "ended":
                woken = woken | self._ends.pop(lease.id, set())
            for future in woken:
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
