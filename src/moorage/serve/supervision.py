"""What the server tells systemd while it serves: that it is ready, what it does, that it works.

It is ready when `/readyz` says so. For the watchdog, it works as long as the event loop turns, and
the database answers in a transaction of its own, in turn with all others: one that takes longer
than the watchdog permits is taken for one that hangs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from moorage.service.app import Service
from moorage.systemd.heartbeat import Probe, heartbeat
from moorage.systemd.notifier import Notifier

ANSWER_SECONDS = 60.0
"""How long the database may take to answer, if there is no watchdog: only the status shows it."""

SHARED_ANSWER_SECONDS = 660.0
"""The same for PostgreSQL, in any case: its engine itself gives up, after ten minutes at most, and
another start could not reach a server that hangs either."""


class Supervision:
    """Notifies systemd; ready at the earliest after `begin`."""

    def __init__(
        self,
        notifier: Notifier,
        service: Service,
        readiness: Callable[[], Awaitable[str | None]],
        shown: Callable[[], str],
    ) -> None:
        """Prepare it.

        Args:
            notifier: to systemd.
            service: must answer.
            readiness: returns why requests should go elsewhere; None: the server is ready.
            shown: returns what the server does.
        """
        self._notifier = notifier
        self._service = service
        self._readiness = readiness
        self._shown = shown
        self._reason: str | None = "the database has not answered yet"
        self._works = True
        self._seconds = notifier.watchdog_seconds or ANSWER_SECONDS
        if service.engine.shared:
            self._seconds = max(self._seconds, SHARED_ANSWER_SECONDS)
        self._transaction_due = 0.0
        self._probe = Probe(self._ask, self._seconds)
        self._listens = False

    def begin(self) -> None:
        """The server listens from now on."""
        self._listens = True

    @asynccontextmanager
    async def notifying(self) -> AsyncIterator[None]:
        """Notify systemd as long as this is entered."""
        try:
            async with heartbeat(self._notifier, self._status, self._answered, self._is_ready):
                yield
        finally:
            await self._probe.close()

    def _is_ready(self) -> bool:
        return self._listens and self._reason is None

    def _answered(self) -> bool:
        self._works = self._probe.answered()
        return self._works

    def _status(self) -> str:
        if not self._works:
            return f"hangs: the database has not answered for {self._seconds:g} s"
        if self._reason is None or self._notifier.stops:
            return self._shown()
        return f"not ready: {self._reason}"

    async def _ask(self) -> None:
        self._reason = await self._readiness()
        now = asyncio.get_running_loop().time()
        if now >= self._transaction_due:
            self._transaction_due = now + self._seconds / 4
            await self._service.operations.answer()
