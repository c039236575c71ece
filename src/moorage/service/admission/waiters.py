"""Requests that wait for a grant or for the end of a lease: one future each."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.service_time import When


class Departure(NamedTuple):
    """The deadlines (`heard_until`) of a ticket before and after a client stops waiting for it."""

    latest: Instant
    """Because of all clients that waited here."""
    others: Instant | None
    """Because of those that still wait here, or elsewhere; None: there are none."""


class Heard(NamedTuple):
    """Which deadline a ticket got by its last request here."""

    until: Instant
    elsewhere: Instant | None
    """The one that it had before, because of clients of other processes; None: there were none."""


HEARD_MAX = 100_000
"""For at most this many tickets it is remembered who has set their deadlines."""


class Waiters:
    """Futures by lease. Several clients may wait for the same lease."""

    def __init__(self) -> None:
        self._futures: dict[LeaseId, dict[asyncio.Future[Lease], Instant]] = {}
        """With the `until` of each client."""
        self._latest: dict[LeaseId, Instant] = {}
        """The latest `until` of the clients that wait here for each lease, or were woken."""
        self._elsewhere: dict[LeaseId, Instant] = {}
        """The latest `until` of clients that wait at other processes for leases of clients here."""
        self._heard: dict[LeaseId, Heard] = {}
        """Of tickets that may be polled again, on processes that share a ledger."""
        self._ends: dict[LeaseId, dict[asyncio.Future[Lease], bool]] = {}
        """Futures of requests that wait only for the end; true: or until the holder is asked to
        stop."""
        self._closed = False

    @property
    def count(self) -> int:
        """The number of leases with waiting clients."""
        return len(self._futures.keys() | self._ends.keys())

    @property
    def expected(self) -> list[LeaseId]:
        """The leases with waiting clients."""
        return [*(self._futures.keys() | self._ends.keys())]

    def close(self) -> None:
        """Cancel all current and future waits, because the service is stopping."""
        self._closed = True
        for future in chain(*self._futures.values(), *self._ends.values()):
            if not future.done():
                future.cancel()

    def expect(
        self, lease: LeaseId, until: Instant, elsewhere: Instant | None = None
    ) -> asyncio.Future[Lease]:
        """Return a future that is set when the ticket is granted or ends.

        Call this first, then read the lease, then wait, so that no change is missed.

        Args:
            lease: a ticket.
            until: its `heard_until` (alive time) because of this client.
            elsewhere: the same because of clients of other processes; None: there are none.
        """
        if elsewhere is not None:
            self._elsewhere[lease] = max(elsewhere, self._elsewhere.get(lease, elsewhere))
        self._latest[lease] = max(until, self._latest.get(lease, until))
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.cancel()
        self._futures.setdefault(lease, {})[future] = until
        return future

    def until_of(self, lease: LeaseId) -> Instant | None:
        """Return the latest `until` of the clients that wait here for a lease; None: none does."""
        return max(self._futures.get(lease, {}).values(), default=None)

    def hear(self, lease: LeaseId, until: Instant, elsewhere: Instant | None) -> None:
        """Remember that a request here has set the deadline (`heard_until`) of a ticket.

        Args:
            lease: a ticket.
            until: its deadline now; not changed by the request if it is `elsewhere`.
            elsewhere: the same because of clients of other processes; None: there are none.
        """
        if until == elsewhere:
            return
        if len(self._heard) >= HEARD_MAX:
            self._heard.clear()
        self._heard[lease] = Heard(until, elsewhere)

    def elsewhere_of(self, lease: LeaseId, until: Instant) -> Instant | None:
        """Return which part of a ticket's deadline is that of clients of other processes.

        A request that has ended here, such as the poll before this one, is not one that waits
        elsewhere: otherwise a client that is killed would count as present until its end.
        """
        heard = self._heard.get(lease)
        if heard is not None and heard.until == until:
            return heard.elsewhere
        return None if until == self.until_of(lease) else until

    def forget(self, lease: LeaseId, future: asyncio.Future[Lease]) -> Departure | None:
        """Give back a future of `expect`; return the deadlines of its lease, if it lowers them."""
        future.cancel()
        futures = self._futures.get(lease, {})
        futures.pop(future, None)
        latest, others = self._latest.pop(lease, None), self.until_of(lease)
        if others is None:
            self._futures.pop(lease, None)
            others = self._elsewhere.pop(lease, None)
        else:
            self._latest[lease] = others
        if latest is None or latest == others:
            return None
        return Departure(latest, others)

    def expect_end(self, lease: LeaseId, *, or_stop: bool = False) -> asyncio.Future[Lease]:
        """Return a future that is set when the lease ends. Use it as `expect`.

        `or_stop`: also when its holder is asked to stop.
        """
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.cancel()
        self._ends.setdefault(lease, {})[future] = or_stop
        return future

    def forget_end(self, lease: LeaseId, future: asyncio.Future[Lease]) -> None:
        """Give back a future of `expect_end`."""
        future.cancel()
        futures = self._ends.get(lease, {})
        futures.pop(future, None)
        if not futures:
            self._ends.pop(lease, None)

    def note(self, changes: Changes, _when: When) -> None:
        """Wake clients whose ticket no longer waits, or whose lease has ended or is gone.

        Of a lease that is gone there is nothing to return: their futures are cancelled.
        """
        for key, lease in changes.leases.items():
            if lease is not None and lease.state == "waiting":
                continue
            self._heard.pop(key, None)
            # In the order in which they came, so that a simulated seed repeats.
            woken = [*self._futures.pop(key, {})]
            if lease is None or lease.state == "ended":
                woken += self._ends.pop(key, {})
            elif lease.stop_until is not None:
                woken += [future for future, stop in self._ends.get(key, {}).items() if stop]
            for future in woken:
                if lease is None:
                    future.cancel()
                elif not future.done():
                    future.set_result(lease)


async def either(
    future: asyncio.Future[Lease], seconds: float, gone: Callable[[], Awaitable[None]] | None
) -> bool:
    """Wait for a future, a timeout or a disconnect; return whether the caller is still there."""
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
