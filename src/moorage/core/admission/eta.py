"""How long a ticket may still wait: a range, from how long past leases of its pools were held.

An estimate that says what it rests on. Earliest: everybody before it, and a turn of every unit, as
quick as the quickest tenth of the past. Latest: as slow as the slowest tenth, all units of a round
ending together. Both take pacing and rest into account; of two tickets in one line the later never
has the earlier range. New tickets of higher priority, and changes of the pool, are not foreseen.
"""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from moorage.core.admission import pacing
from moorage.core.admission.model import SECOND, Pool
from moorage.core.clock import Instant

QUICK, SLOW = 0.1, 0.9
"""Shares of past leases that were held for less than what is told."""

Range = tuple[float, float]
"""Earliest and latest, in seconds from now."""


class Place(Struct, frozen=True):
    """Where a ticket stands in the line of one pool."""

    rank: int
    """1: the first."""
    units: int
    """That it and all before it need."""


def eta(
    pool: Pool, limit: int, free: int, at: Instant, place: Place, own: int, held: Sequence[float]
) -> Range | None:
    """Return when a ticket may be granted, as far as one pool is concerned.

    Args:
        pool: whose line it is.
        limit: units that the pool has.
        free: units that limit and rest leave; may be negative.
        at: now, in service time.
        place: of the ticket.
        own: units that the ticket itself needs; they are in `place`, too.
        held: seconds for which past leases of the pool were held, rising. Without any, the pool's
            hold is the most; without a hold there is nothing to tell from.

    Returns:
        None: there is no telling.
    """
    freed = _freed(pool, limit, place.units - free, at, held)
    if freed is None:
        return None
    paced = _paced(pool, at, place.units - own)
    return max(freed[0], paced[0]), max(freed[1], paced[1])


def _freed(pool: Pool, limit: int, wanted: int, at: Instant, held: Sequence[float]) -> Range | None:
    """Return when so many units will have become free."""
    if wanted <= 0:
        return 0.0, 0.0
    rested = 0.0
    for rest in pool.resting:
        if wanted > 0 and rest.until > at:
            wanted -= rest.units
            rested = (rest.until - at) / SECOND
    if wanted <= 0:
        return rested, rested
    if limit <= 0 or not (held or pool.spec.hold is not None):
        return None
    cooldown = pool.spec.cooldown / SECOND
    quick = share_of(held, QUICK) if held else 0.0
    slow = share_of(held, SLOW) if held else (pool.spec.hold or 0) / SECOND
    rounds = ceil(wanted / limit)
    return max(rested, (wanted - 1) / limit * quick), rested + rounds * (slow + cooldown)


def _paced(pool: Pool, at: Instant, ahead: int) -> Range:
    """Return when pacing permits a grant after so many units."""
    limits = pool.spec.pacing
    if limits is None:
        return 0.0, 0.0
    opens = (pacing.opens_at(pool) or at) + max(0, at - pool.paced_at)
    earliest = opens + ahead * limits.interval - at
    latest = earliest + ahead * limits.jitter
    return max(0, earliest) / SECOND, max(0, latest) / SECOND


def share_of(rising: Sequence[float], share: float) -> float:
    """Return the value below which a share of these lies; they are sorted, and there is one."""
    return rising[min(len(rising) - 1, int(share * len(rising)))]
