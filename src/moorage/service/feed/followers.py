"""Followers: components that are notified of every change of a room, by any process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.service_time import When
from moorage.service.background import Loop
from moorage.store.admission import changes as admission_changes
from moorage.store.changelog import Batch
from moorage.store.fleet import changes as fleet_changes

RETRY_SECONDS = 1.0
"""Least time between two readings of the whole state."""


class Mergeable(Protocol):
    """The changes of a room."""

    def update(self, other: Any) -> None:
        """Merge later changes, which override those here."""
        ...


C = TypeVar("C", bound=Mergeable)

Follower = Callable[[C, When], None]
"""Receives changes of a room, once they are durable. Changes may be reported twice."""

ChangeRow = tuple[str, str, str | None]
"""(kind, key, body) of a change row."""

log = logging.getLogger("moorage.others")


def notify(followers: Iterable[Follower[C]], changes: C, when: When) -> bool:
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


class Followers(Generic[C]):
    """Notifies followers of every commit of a room; if they have missed some, of the whole state.

    They may miss commits on a shared database only; a process alone is notified of its own.
    """

    def __init__(
        self,
        kinds: Collection[str],
        read: Callable[[Iterable[ChangeRow]], C],
        empty: Callable[[], C],
    ) -> None:
        """Create it without followers.

        Args:
            kinds: the kinds of change rows that belong to the room.
            read: decodes change rows of these kinds.
            empty: returns no changes.
        """
        self._kinds = frozenset(kinds)
        self._read = read
        self._empty = empty
        self._followers: list[Follower[C]] = []
        self._missed = asyncio.Event()
        self._since: C | None = None
        """Reports since the reading of the whole state began; None: it is not read."""
        self._loop = Loop(
            log, "cannot read what followers have missed; trying again", RETRY_SECONDS
        )

    def add(self, *followers: Follower[C]) -> None:
        """Notify these, too."""
        self._followers += followers

    def report(self, rows: Iterable[ChangeRow], revision: int, when: When) -> None:
        """Notify all followers of a peer's commit; if it cannot be decoded, of the whole state."""
        own = [row for row in rows if row[0] in self._kinds]
        if not own:
            return
        try:
            changes = self._read(own)
        except Exception:
            log.exception("cannot read the changes of %s in %d", sorted(self._kinds), revision)
            self.missed()
        else:
            self.notify(changes, when)

    def notify(self, changes: C, when: When) -> None:
        """Notify all followers of a commit."""
        if self._since is not None:
            self._since.update(changes)
        if not notify(self._followers, changes, when):
            self.missed()

    def missed(self) -> None:
        """Report the whole state, because commits were not reported."""
        self._missed.set()

    def start(self, reload: Callable[[], Awaitable[tuple[C, When]]]) -> None:
        """Start to report the whole state, now and whenever commits were missed.

        `reload` reads it, and the time.
        """
        self.missed()
        self._loop.start(partial(self._step, reload))

    async def stop(self) -> None:
        """Stop."""
        await self._loop.stop()

    async def _step(self, reload: Callable[[], Awaitable[tuple[C, When]]]) -> float:
        """Wait until commits were missed, then report the whole state."""
        await self._missed.wait()
        self._missed.clear()
        self._since = self._empty()
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


@dataclass(slots=True)
class RoomFollowers:
    """The followers of pools and leases, and those of agents and groups."""

    admission: Followers[AdmissionChanges] = field(
        default_factory=partial(
            Followers,
            admission_changes.FOLLOWED_KINDS,
            admission_changes.changes_read,
            AdmissionChanges,
        )
    )
    fleet: Followers[FleetChanges] = field(
        default_factory=partial(
            Followers, fleet_changes.FOLLOWED_KINDS, fleet_changes.changes_read, FleetChanges
        )
    )

    @property
    def all(self) -> tuple[Followers[Any], ...]:
        """The followers by room."""
        return self.admission, self.fleet

    def committed(
        self,
        admission: AdmissionChanges | None,
        fleet: FleetChanges | None,
        when: When,
        *,
        was_read: bool,
    ) -> None:
        """Notify the followers of a commit of this process.

        `was_read`: its change rows were read already, and may be followed by newer changes; then
        only what has no change rows is news.
        """
        if admission is not None:
            self.admission.notify(admission.unlogged() if was_read else admission, when)
        if fleet and not was_read:
            self.fleet.notify(fleet, when)

    def report(self, batch: Batch, when: When) -> None:
        """Notify the followers of a peer's batch."""
        for followers in self.all:
            followers.report(batch.others, batch.revision, when)

    def missed(self) -> None:
        """Report the whole state of each room, because commits were not reported."""
        for followers in self.all:
            followers.missed()
