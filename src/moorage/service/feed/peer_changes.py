"""Follows what peers commit to pools and leases, by the change rows of the database."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from moorage.core.admission.facts import Changes
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.background import Loop
from moorage.service.feed.watch import ChangesGoneError, Cursor, Seen, Watch
from moorage.store.admission.rows import lease_from_body, pool_from_body

KINDS = ("pool", "lease")
"""The kinds of changes that followers need."""

RETRY_SECONDS = 1.0
"""Pause after a failed read of the change rows."""

WAIT_SECONDS = 60.0

Follower = Callable[[Changes, When], None]

log = logging.getLogger("moorage.others")


class PeerChanges:
    """Reads the change rows of a shared database, our own included, and notifies followers."""

    def __init__(
        self,
        watch: Watch,
        now: Callable[[], Awaitable[When]],
        followers: Sequence[Follower],
        reload: Callable[[], Awaitable[Changes]],
    ) -> None:
        """Remember what to follow and whom to notify.

        Args:
            watch: the change rows.
            now: returns the service's time.
            followers: called with the changes.
            reload: returns everything they need, for the start and when changes were missed.
        """
        self._watch = watch
        self._now = now
        self._followers = followers
        self._reload = reload
        self._cursor: Cursor | None = None
        """What was reported already; None: followers need everything."""
        self._loop = Loop(log, "cannot follow the other processes; trying again", RETRY_SECONDS)

    def start(self) -> None:
        """Start: report what there is, then what changes."""
        self._loop.start(self._step)

    async def stop(self) -> None:
        """Stop."""
        await self._loop.stop()

    async def _step(self) -> float | None:
        if self._watch.closed:
            return None
        # Followers may miss something if this fails or the changes are gone (after a restore, or if
        # this process was away for too long): then everything is reported again.
        cursor, self._cursor = self._cursor, None
        with suppress(ChangesGoneError):
            if cursor is None:
                cursor = await self._watch.now()  # first: changes in between are reported twice
                self._tell(await self._reload(), await self._now())
            window = await self._watch.awaited(cursor, KINDS, seconds=WAIT_SECONDS)
            if window.changes:
                self._tell(changes_of(window.changes), await self._now())
            self._cursor = window.next
        return 0.0

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
