"""A lease that has lasted far longer than leases of its pool do, while a line waits behind it.

What is usual is the hold of the pool. Without one it is several times what past leases took. While
younger leases come and go, the line moves, so only a much older one is named: some long jobs among
short ones are no trouble.
"""

from collections.abc import Sequence

from msgspec import Struct

from moorage.core.admission.forecast.holders import SlotHolder
from moorage.core.admission.forecast.statistics import percentile
from moorage.core.admission.model import Pool
from moorage.core.ages import age_text
from moorage.core.clock import MINUTE, SECOND, Instant

SEVERAL = 4
"""Medians of past leases. The 90th percentile counts if it is more."""

MUCH = 5
"""How often as old as usual a lease is among younger ones."""

PASTS_LEAST = 5
"""Past leases that show what is usual: fewer do not."""

AGE_LEAST = MINUTE
"""A younger lease is never old: nobody can look in time."""


class Overstay(Struct, frozen=True):
    """The oldest lease of a pool, if it is too old."""

    holder: SlotHolder
    usual: int
    """Microseconds that leases last at most, as a rule."""
    blocks: bool
    """All leases of the pool are that old: the line does not move."""


def overstay_of(
    pool: Pool,
    oldest: SlotHolder | None,
    newest: Instant | None,
    held: Sequence[float],
    at: Instant,
) -> Overstay | None:
    """Return the oldest lease of a pool if it is too old; None: it is not, or this is unknown.

    Args:
        pool: that it belongs to.
        oldest: its lease that was granted first; None: it has none.
        newest: when its latest lease was granted; None: unknown, as of very many.
        held: durations of past leases in seconds, ascending.
        at: now, in service time.
    """
    usual = _usual(pool, held)
    if oldest is None or usual is None:
        return None
    age = at - oldest.granted_at
    blocks = newest is not None and at - newest > usual
    if age < AGE_LEAST or age <= (usual if blocks else MUCH * usual):
        return None
    return Overstay(oldest, usual, blocks)


def overstay_text(holder: str, age: float, usual: float, blocks: bool) -> str:
    """Return whose lease lasts too long, of times in seconds; `blocks`: as in `Overstay`."""
    stands = ", and the line stands still" if blocks else ""
    return f"{holder} has held units for {age_text(age)}, usually at most {age_text(usual)}{stands}"


def _usual(pool: Pool, held: Sequence[float]) -> int | None:
    if pool.spec.hold is not None:
        return pool.spec.hold
    if len(held) < PASTS_LEAST:
        return None
    return round(max(SEVERAL * percentile(held, 50), percentile(held, 90)) * SECOND)
