"""Followers: components that are notified of every change of pools and leases, by any process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from moorage.core.admission.facts import Changes
from moorage.core.service_time import When
from moorage.service.background import Loop

RETRY_SECONDS = 1.0
"""Least time between two readings of the whole state."""

Follower = Callable[[Changes, When], None]
"""Receives changes of pools and leases, once they are durable. Changes may be reported twice."""

log = logging.getLogger("moorage.others")


def notify(followers: Iterable[Follower], changes: Changes, when: When) -> bool:
    """Notify followers of a commit; return whether none has failed.

    The commit is final: a follower's exception is logged, never returned to a caller.
    """
    sound = True
    for follower in followers:
        try:
            follower(changes, when)
        except Exception:
            sound = False
            log.exception("the follower %r failed on a commit", follower)
    return sound


class Followers:
    """Notifies followers of every commit; if they have missed some, of the whole state.

    They may miss commits on a shared database only; a process alone is notified of its own.
    """

    def __init__(self) -> None:
        self._followers: list[Follower] = []
        self._missed = asyncio.Event()
        self._since: Changes | None = None
        """What was reported since the reading of the whole state began; None: it is not read."""
        self._loop = Loop(
            log, "cannot read what followers have missed; trying again", RETRY_SECONDS
        )

    def add(self, *followers: Follower) -> None:
        """Notify these, too."""
        self._followers += followers

    def notify(self, changes: Changes, when: When) -> None:
        """Notify all followers of a commit."""
        if self._since is not None:
            self._since.pools.update(changes.pools)
            self._since.leases.update(changes.leases)
        if not notify(self._followers, changes, when):
            self.missed()

    def missed(self) -> None:
        """Report the whole state, because commits were not reported."""
        self._missed.set()

    def start(self, reload: Callable[[], Awaitable[tuple[Changes, When]]]) -> None:
        """Start to report the whole state, now and whenever commits were missed.

        `reload` reads it, and the time.
        """
        self.missed()
        self._loop.start(partial(self._step, reload))

    async def stop(self) -> None:
        """Stop."""
        await self._loop.stop()

    async def _step(self, reload: Callable[[], Awaitable[tuple[Changes, When]]]) -> float:
        """Wait until commits were missed, then report the whole state."""
        await self._missed.wait()
        self._missed.clear()
        self._since = Changes()
        try:
            state, when = await reload()
            state.update(self._since)  # it may be newer than what was read
        except Exception:
            self.missed()
            raise
        finally:
            self._since = None
        self.notify(state, when)
        return RETRY_SECONDS
