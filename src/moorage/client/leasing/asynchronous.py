"""Leases for asyncio: the waiting and the renewing happen in threads, never in the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

from moorage.client.leasing.around import enter, leases_before, leases_here, leave
from moorage.client.leasing.dry_run import NoServer, holding
from moorage.client.leasing.errors import LeaseLostError, TooManyLeasesError
from moorage.client.leasing.options import HoldingOptions
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.nesting import OwnLeases

T = TypeVar("T")

LEASES_MAX = 256
"""Leases that one `AsyncClient` waits for or holds at once, by default."""


class Places:
    """Counts the leases of one client. Used in one event loop at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    def take(self) -> None:
        """Count one more. Raises TooManyLeasesError."""
        if self._taken >= self._most:
            raise TooManyLeasesError(
                f"this client waits for or holds {self._most} leases already:"
                " raise leases_max of AsyncClient"
            )
        self._taken += 1

    def leave(self) -> None:
        """Count one less."""
        self._taken -= 1


class AsyncHolding:
    """One lease in a task; made by `AsyncClient.lease`, usable once, with `async with`.

    If the lease is lost, the task is cancelled, and the block ends with LeaseLostError. If the task
    is cancelled otherwise, the lease is released or the ticket withdrawn.
    """

    def __init__(self, leases: Leases | NoServer, options: HoldingOptions, places: Places) -> None:
        self._on_lost = options.on_lost
        self._holding = holding(leases, options._replace(on_lost=self._noticed))
        self._places = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._inside = self._cancelled = False

    @property
    def id(self) -> str:
        """The lease's id."""
        return self._holding.id

    @property
    def token(self) -> str:
        """The fencing token: later leases of a pool have higher ones."""
        return self._holding.token

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that it has units of; of several alternatives those of the granted one."""
        return self._holding.pools

    @property
    def slots(self) -> dict[str, list[str]]:
        """The names of its slots, by pool."""
        return self._holding.slots

    @property
    def lost(self) -> str | None:
        """See `Holding.lost`."""
        return self._holding.lost

    @property
    def over(self) -> bool:
        """Whether its hold has ended it, as requested."""
        return self._holding.over

    def check(self) -> None:
        """Raise LeaseLostError if it is lost."""
        self._holding.check()

    def report(self, result: str, detail: str = "") -> None:
        """See `Holding.report`."""
        self._holding.report(result, detail)

    async def __aenter__(self) -> AsyncHolding:
        """See `Holding.acquire`."""
        self._places.take()
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        # Tasks beside this one are many, and do not wait for it: only those count that started it.
        self._holding.own = OwnLeases(leases_here(), leases_before(), complete=True)
        try:
            try:
                await asyncio.shield(_begun(self._holding.acquire))
                # It may have been lost before this task ran again, and so could be cancelled.
                self._holding.check()
            except (asyncio.CancelledError, LeaseLostError):
                await asyncio.shield(_begun(self._holding.abandon))
                raise
        except BaseException:
            self._places.leave()
            raise
        enter(self._holding)
        self._inside = True
        return self

    async def turn(self) -> AsyncHolding:
        """See `Holding.turn`. A task that is cancelled meanwhile leaves its place in line."""
        self._places.take()
        try:
            await asyncio.shield(_begun(self._holding.turn))
        except asyncio.CancelledError:
            await asyncio.shield(_begun(self._holding.abandon))
            raise
        finally:
            self._places.leave()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release it. Raises LeaseLostError: it was lost, and the block raised no other error."""
        self._inside = False
        leave(self._holding)
        ours = self._cancelled and isinstance(error, asyncio.CancelledError)
        reason = self._holding.lost
        try:
            await asyncio.shield(_begun(lambda: self._holding.end(error)))
        finally:
            self._places.leave()
        if ours:
            # Since Python 3.11; without it, an outer asyncio.timeout or TaskGroup is misled.
            getattr(self._task, "uncancel", int)()
            raise LeaseLostError(self.id, str(reason)) from error

    def _noticed(self, reason: str) -> None:
        if self._on_lost is not None:
            self._on_lost(reason)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._inside and self._task is not None:
            self._cancelled = True
            self._task.cancel()


def _begun(call: Callable[[], T]) -> asyncio.Future[T]:
    """Call a function in a new thread; return its result as a future.

    A thread of its own for each, because a pool of threads would let leases wait for each other,
    and would delay the end of the program until its threads are done.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # is now retrieved

    def done(result: T | None, failure: BaseException | None) -> None:
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(result)  # type: ignore[arg-type] # it is a T without a failure

    def work() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as raised:  # carried to the caller
            failure = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done, result, failure)

    threading.Thread(target=work, daemon=True).start()
    return future
