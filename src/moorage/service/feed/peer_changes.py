"""Follows what peers commit to pools and leases, by the change rows of the database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from moorage.core.admission.facts import Changes
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.feed.watch import ChangesGoneError, Seen, Watch
from moorage.store.admission.rows import lease_from_body, pool_from_body

KINDS = ("pool", "lease")
"""The kinds of changes that followers need."""

RETRY_SECONDS = 1.0
"""Pause after a failed read of the change rows."""

WAIT_SECONDS = 60.0

Follower = Callable[[Changes, When], None]

log = logging.getLogger("moorage.others")


class Others:
    """Reads the change rows of a shared database, our own included, and notifies followers."""

    def __init__(
        self,
        watch: Watch,
        now: Callable[[], Awaitable[When]],
        followers: Sequence[Follower],
        anew: Callable[[], Awaitable[Changes]],
    ) -> None:
        """Remember what to follow and whom to notify.

        Args:
            watch: the change rows.
            now: returns the service's time.
            followers: called with the changes.
            anew: returns everything they need, for the start and when changes were missed.
        """
        self._watch = watch
        self._now = now
        self._followers = followers
        self._anew = anew
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start: report what there is, then what changes."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        cursor = None
        while not self._watch.closed:
            try:
                if cursor is None:
                    newest = await self._watch.now()  # first: changes in between are reported twice
                    self._tell(await self._anew(), await self._now())
                    cursor = newest
                window = await self._watch.awaited(cursor, KINDS, seconds=WAIT_SECONDS)
                if window.changes:
                    self._tell(changes_of(window.changes), await self._now())
                cursor = window.next
            except ChangesGoneError:  # this process was away for too long, or there was a restore
                cursor = None
            except Exception:  # followers may have missed something: report everything again
                log.exception("cannot follow the other processes; trying again")
                cursor = None
                await asyncio.sleep(RETRY_SECONDS)

    def _tell(self, changes: Changes, when: When) -> None:
        for follower in self._followers:
            follower(changes, when)


def changes_of(seen: list[Seen]) -> Changes:
    """Read the change rows of pools and leases."""
    changes = Changes()
    for one in seen:
        body = one.row.body
        if one.row.kind == "pool":
            changes.pools[one.row.key] = None if body is None else pool_from_body(body)
        else:
            lease = None if body is None else lease_from_body(body)
            changes.leases[LeaseId(one.row.key)] = lease
    return changes
