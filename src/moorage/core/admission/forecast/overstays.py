"""A lease that has lasted far longer than leases of its pool do, while a line waits behind it.

What is usual is the hold of the pool, or more if requests ask for more. Without a hold it is
several times what past leases took. While younger leases come and go, the line moves, so only a
much older one is named: some long jobs among short ones are no trouble. The line also moves if
units are in their cooldown, and will be enough for its first ticket.
"""

from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct

from moorage.core.admission.facts import Facts
from moorage.core.admission.forecast.holders import SlotHolder
from moorage.core.admission.forecast.statistics import percentile
from moorage.core.admission.forecast.why import Evidence
from moorage.core.admission.model import Lease, Need, Pool
from moorage.core.admission.units import fitting, rests
from moorage.core.ages import age_text
from moorage.core.clock import MINUTE, SECOND, Instant
from moorage.core.wishes import suits

SEVERAL = 4
"""Medians of past leases. The 90th percentile counts if it is more."""

MUCH = 5
"""How often as old as usual a lease is among younger ones."""

PASTS_LEAST = 5
"""Past leases that show what is usual: fewer do not."""

SINCE = attrgetter("since")

AGE_LEAST = MINUTE
"""A younger lease is never old: nobody can look in time."""


class Overstay(Struct, frozen=True):
    """The lease whose units are held longest, if that is too long."""

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
        oldest: its lease whose units are held longest; None: it has none.
        newest: since when those of its latest lease are held; None: unknown, as of very many.
        held: durations of past leases in seconds, ascending.
        at: now, in service time.
    """
    usual = _usual(pool, held)
    if oldest is None or usual is None:
        return None
    age = at - oldest.since
    blocks = newest is not None and at - newest > usual
    if age < AGE_LEAST or age <= (usual if blocks else MUCH * usual):
        return None
    return Overstay(oldest, usual, blocks)


def overstay_before(
    first: Lease, facts: Facts, pool: Pool, evidence: Evidence, at: Instant
) -> Overstay | None:
    """Return the lease that the first ticket of a pool's line waits behind for too long.

    A ticket for slots with labels waits behind those that have such slots.
    """
    oldest, newest = evidence.oldest, evidence.newest
    needs = [need for need in first.needs if need.pool == pool.name]
    if evidence.slotted and all(need.wanted for need in needs):
        slots = facts.slots.get(pool.name, {}).values()
        suitable = {
            slot.lease for slot in slots if any(suits(slot.labels, one.wanted) for one in needs)
        }
        there = [one for one in evidence.slotted if one.lease in suitable]
        if not there:
            return None
        oldest, newest = min(there, key=SINCE), max(map(SINCE, there))
    listed = sum(one.units for one in evidence.holding) >= pool.occupied
    found = overstay_of(pool, oldest, newest if listed else None, evidence.held, at)
    if found is not None and found.blocks and any(_comes(facts, one, at) for one in needs):
        return overstay_of(pool, oldest, None, evidence.held, at)
    return found


def _comes(facts: Facts, need: Need, at: Instant) -> bool:
    """Return whether units for a need are in their cooldown, and no lease must end before."""
    resting = rests(facts, facts.pools[need.pool], at, need.state, need.wanted)
    idle = sum(rest.units for rest in resting)
    return idle > 0 and fitting(facts, need, at) + idle >= need.units


def overstay_text(holder: str, age: float, usual: float, blocks: bool) -> str:
    """Return whose lease lasts too long, of times in seconds; `blocks`: as in `Overstay`."""
    stands = ", and the line stands still" if blocks else ""
    ages = f"held for {age_text(age)}, usually at most {age_text(usual)}"
    return f"{holder} has units that have been {ages}{stands}"


def _usual(pool: Pool, held: Sequence[float]) -> int | None:
    hold = pool.spec.hold
    if len(held) < PASTS_LEAST:
        return hold
    most = percentile(held, 90)
    if hold is not None:  # requests may ask for more
        return max(hold, round(most * SECOND))
    return round(max(SEVERAL * percentile(held, 50), most) * SECOND)
