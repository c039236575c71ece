"""Coalesces concurrent reads: callers that wait at the same time share one query."""

import asyncio
from collections.abc import Awaitable, Callable

from moorage.store.api import Unavailable


class SingleFlight:
    """Runs `look`, one at a time, for all waiting callers; each gets one begun after its call."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._next: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def taken(self) -> None:
        """Wait for a look that begins after this call. Raises what it raises."""
        await asyncio.shield(self.begun())

    def begun(self) -> asyncio.Future[None]:
        """Ask for a look that begins after this call, without waiting; return its end."""
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.create_future()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._while_asked())
        return self._next

    async def stop(self) -> None:
        """Cancel a running look; waiting callers get Unavailable."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._next is not None:
            _fail(self._next, _ended())
            self._next = None

    async def _while_asked(self) -> None:
        while self._next is not None:
            asked, self._next = self._next, None
            try:
                await self._look()
            except asyncio.CancelledError:
                _fail(asked, _ended())
                raise
            except Exception as error:  # raised to the callers, which may try again
                _fail(asked, error)
            else:
                asked.set_result(None)


def _ended() -> Unavailable:
    return Unavailable("the service is shutting down")


def _fail(asked: asyncio.Future[None], error: Exception) -> None:
    asked.set_exception(error)
    asked.exception()  # marks it as retrieved, in case no caller waits any more
