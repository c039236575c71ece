"""Notifies the supervisor from an event loop while a service runs: its status, and that it works.

Until it is ready, it asks for more time instead: what it waits for would not come sooner after
another start.

The loop itself does it, so a loop that hangs is silent. The service says what else must work:
`Probe` asks it, and a question without an answer silences the heartbeat, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from moorage.systemd.notifier import Notifier
from moorage.systemd.patience import EXTENSION_SECONDS

STATUS_SECONDS = 5.0
"""How often to notify a supervisor, unless its watchdog expects it more often."""

READY_SECONDS = 0.1
"""How often a service that has started is asked whether it is ready."""


class Probe:
    """Asks a question again and again; the service works as long as there is any answer."""

    def __init__(self, ask: Callable[[], Awaitable[object]], seconds_max: float) -> None:
        """Create it; needs a running event loop when it is used.

        Args:
            ask: returns or raises when there is an answer.
            seconds_max: how long an answer may take.
        """
        self._ask = ask
        self._seconds_max = seconds_max
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = 0.0

    def answered(self) -> bool:
        """Return whether no answer is overdue; ask again if the last question was answered."""
        now = asyncio.get_running_loop().time()
        if self._asking is None or self._asking.done():
            self._asking, self._asked_at = asyncio.create_task(self._once()), now
        return now - self._asked_at < self._seconds_max

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _once(self) -> None:
        with suppress(Exception):  # an error is an answer
            await self._ask()


@asynccontextmanager
async def heartbeat(
    notifier: Notifier,
    status: Callable[[], str],
    works: Callable[[], bool] = lambda: True,
    is_ready: Callable[[], bool] = lambda: False,
) -> AsyncIterator[None]:
    """Notify the supervisor as long as this is entered.

    Args:
        notifier: to the supervisor.
        status: returns what to show.
        works: returns whether the service works, for the watchdog and for more time.
        is_ready: returns whether the start is complete; not necessary if the service calls `ready`.
    """
    beating = asyncio.create_task(_beat(notifier, status, works, is_ready))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])


async def _beat(
    notifier: Notifier,
    status: Callable[[], str],
    works: Callable[[], bool],
    is_ready: Callable[[], bool],
) -> None:
    now = asyncio.get_running_loop().time
    extend_at = now()
    while notifier.active:
        working = works()
        if not notifier.is_ready and is_ready():
            notifier.ready()
        notifier.status(status())
        if working and notifier.is_ready:
            notifier.alive()
        elif working and not notifier.stops and now() >= extend_at:
            notifier.extend(EXTENSION_SECONDS)
            extend_at = now() + STATUS_SECONDS
        await asyncio.sleep(_pause(notifier))


def _pause(notifier: Notifier) -> float:
    """Return the seconds until the next notification: at most half of what the watchdog permits."""
    seconds = STATUS_SECONDS if notifier.is_ready else READY_SECONDS
    if notifier.watchdog_seconds is None:
        return seconds
    return min(seconds, notifier.watchdog_seconds / 2)
