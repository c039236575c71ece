"""How long ended leases and their keys are kept: for a time, unless there are too many."""

from typing import NamedTuple

from moorage.core.clock import HOUR, Instant
from moorage.core.limits import LEASES_KEPT_HOURS, LEASES_KEPT_HOURS_MIN
from moorage.service import errors
from moorage.store.admission import reads
from moorage.store.api import Engine


class EndedKept(NamedTuple):
    """How much is kept of leases that have ended."""

    hours: int | None = LEASES_KEPT_HOURS
    """None: forever."""
    leases_max: int | None = None
    """Beyond this number the oldest ends are deleted earlier; None: no limit."""


class EndedLeases:
    """Knows since when all ended leases of this ledger are kept."""

    def __init__(self, engine: Engine, kept: EndedKept) -> None:
        self._engine = engine
        self._kept = kept
        self._since = Instant(0)

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
        most = self._kept.leases_max
        if most is not None:
            with errors.translated():
                plan = reads.ended_surplus_load(most)
                oldest, surplus = await self._engine.read_aside(plan, slow=True)
            known = oldest if surplus is None else Instant(surplus + 1)
            if known is not None:
                recent = Instant(at - LEASES_KEPT_HOURS_MIN * HOUR)
                self._since = max(self._since, min(known, recent))
        return self.since(at)
