"""How long ended leases and their keys are kept: for a time, unless they are too many or large.

Their sizes are added up once, some thousand at a time, and then only those of newly ended ones.
"""

from collections import deque
from typing import NamedTuple

from moorage.core.clock import HOUR, Instant
from moorage.core.limits import LEASES_KEPT_HOURS, LEASES_KEPT_HOURS_MIN
from moorage.service import errors
from moorage.store.admission import reads
from moorage.store.api import Engine

AT_ONCE = 2_000
"""Ended leases whose sizes one read adds up; they are deleted in such portions if too large."""

LOOKS_MAX = 200
"""Reads of one round: after the start of a large ledger it takes several rounds to know all."""


class EndedKept(NamedTuple):
    """How much is kept of leases that have ended."""

    hours: int | None = LEASES_KEPT_HOURS
    """None: forever."""
    leases_max: int | None = None
    """Beyond this number the oldest ends are deleted earlier; None: no limit."""
    bytes_max: int | None = None
    """Beyond this size in the database the oldest ends are deleted earlier; None: no limit."""


class Sized(NamedTuple):
    """Leases that ended one after another."""

    last: Instant
    """The last end, in service time."""
    leases: int
    bytes: int


class EndedLeases:
    """Knows since when all ended leases of this ledger are kept."""

    def __init__(self, engine: Engine, kept: EndedKept) -> None:
        self._engine = engine
        self._kept = kept
        self._since = Instant(0)
        self._sizes: deque[Sized] = deque()
        """Of all ended leases counted so far, the oldest first."""
        self.leases, self.bytes = 0, 0
        """How many ended leases there are, and their size; as of the last look."""

    def since(self, at: Instant) -> Instant:
        """Return since when (service time) all leases are kept that have ended."""
        hours = self._kept.hours
        return self._since if hours is None else max(self._since, Instant(at - hours * HOUR))

    async def forgettable(self, at: Instant) -> Instant:
        """Return until when ended leases may be deleted now; `since` is that from then on.

        The last hour is always kept, because clients repeat their requests in it. If there are just
        as many as are kept, another process may have deleted older ones, or this one before it was
        started. Raises `Error`: UNAVAILABLE.
        """
        recent = Instant(at - LEASES_KEPT_HOURS_MIN * HOUR)
        await self._measure()
        large = self._too_large()
        if large is not None:
            self._since = max(self._since, min(Instant(large + 1), recent))
        most = self._kept.leases_max
        if most is not None:
            with errors.translated():
                plan = reads.ended_surplus_load(most)
                oldest, surplus = await self._engine.read_aside(plan, slow=True)
            known = oldest if surplus is None else Instant(surplus + 1)
            if known is not None:
                self._since = max(self._since, min(known, recent))
        return self.since(at)

    @property
    def bytes_max(self) -> int | None:
        """The size beyond which the oldest are deleted; None: no limit."""
        return self._kept.bytes_max

    async def _measure(self) -> None:
        """Add the sizes of leases that have ended since the last look. Raises `Error`."""
        for _ in range(LOOKS_MAX):
            if self._sizes and self._sizes[-1].leases < AT_ONCE:
                self._sizes.pop()  # it is counted again, with the new ones
            after = self._sizes[-1].last if self._sizes else Instant(0)
            with errors.translated():
                plan = reads.ended_sizes_load(after, AT_ONCE)
                found = await self._engine.read_aside(plan, slow=True)
            if found is None:
                break
            sized = Sized(*found)
            self._sizes.append(sized)
            if sized.leases < AT_ONCE:
                break
        while self._sizes and self._sizes[0].last < self._since:
            self._sizes.popleft()  # deleted
        self.leases = sum(one.leases for one in self._sizes)
        self.bytes = sum(one.bytes for one in self._sizes)

    def _too_large(self) -> Instant | None:
        """Return the newest end that must go so that the rest is small enough; None: it is."""
        most, left, gone = self._kept.bytes_max, self.bytes, None
        for one in self._sizes:
            if most is None or left <= most:
                break
            left, gone = left - one.bytes, one.last
        return gone
