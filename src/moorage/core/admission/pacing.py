"""The least time between grants: a GCRA (a leaky bucket that is one number) per pool.

A grant is permitted when `Pool.paced_at` is at most `burst - 1` intervals ahead of now; it moves
`paced_at` by an interval and its jitter for each of its units. Pacing never delays a release.
"""

from hashlib import blake2b

from moorage.core.admission.model import Pacing, Pool
from moorage.core.clock import SECOND, Instant
from moorage.core.limits import DURATION_SECONDS_MAX

AHEAD_MAX = 10 * DURATION_SECONDS_MAX * SECOND
"""Microseconds that `paced_at` may be ahead of now: ten years."""


def opens_at(pool: Pool) -> Instant | None:
    """Return the service time from which pacing permits a grant; None: the pool is not paced."""
    pacing = pool.spec.pacing
    return None if pacing is None else Instant(opening(pacing, pool.paced_at))


def opening(pacing: Pacing, paced_at: int) -> int:
    """Return the time from which a grant is permitted, given that of `Pool.paced_at`."""
    return paced_at - (pacing.burst - 1) * pacing.interval


def charged(pacing: Pacing, paced_at: int, at: int, units: int, jitter: int) -> int:
    """Return `paced_at` after a grant of these units, each with this jitter."""
    return max(at, paced_at) + units * (pacing.interval + jitter)


def wakes_at(pool: Pool, at: Instant, silent_at: Instant | None = None) -> Instant | None:
    """Return when time alone may allow a grant in a pool with a line; None: never.

    `silent_at` is when a ticket with units set aside is passed over; None: there is none.
    """
    if pool.paused:
        return None
    times = [rest.until for rest in pool.resting if rest.until > at]
    if silent_at is not None:
        times.append(silent_at)
    opens = opens_at(pool)
    if opens is not None and opens > at:
        times.append(opens)
    return min(times, default=None)


def shortened(pacing: Pacing | None, paced_at: Instant, at: Instant) -> Instant:
    """Return the `paced_at` of a pool with another pacing: no farther ahead than it permits."""
    if pacing is None:
        return paced_at
    return Instant(min(paced_at, at + pacing.burst * pacing.interval))


def is_open(pool: Pool, at: Instant) -> bool:
    """Does pacing permit a grant now?"""
    pacing = pool.spec.pacing
    return pacing is None or opening(pacing, pool.paced_at) <= at


def permitted(pool: Pool, at: Instant, units: int) -> int:
    """Return how many of this many grants of one unit pacing permits at once."""
    pacing, opens = pool.spec.pacing, opens_at(pool)
    if pacing is None or opens is None:
        return units
    if opens > at:
        return 0
    return min(units, pacing.burst, 1 + (at - opens) // pacing.interval)


def paid(pool: Pool, units: int, at: Instant, arrival: int) -> Instant:
    """Return the pool's `paced_at` after a grant to the ticket with this arrival number."""
    pacing = pool.spec.pacing
    if pacing is None:
        return pool.paced_at
    more = jitter(pool.name, arrival, pacing.jitter)
    return Instant(min(charged(pacing, pool.paced_at, at, units, more), at + AHEAD_MAX))


def jitter(pool: str, arrival: int, most: int) -> int:
    """Return 0 to `most` microseconds, evenly spread, the same for the same pool and arrival."""
    if most <= 0:
        return 0
    seed = blake2b(f"{arrival}/{pool}".encode(), digest_size=8).digest()
    return int.from_bytes(seed) % (most + 1)


BURST_SHARE = 10
"""The default pacing permits a tenth of the limit at once."""


def pacing_default(limit: int | None, hold: int | None) -> Pacing | None:
    """Return the default pacing of a pool; None: it has no hold, or no limit.

    `limit` units per `hold` microseconds: a full pool starts leases at the rate at which they end.
    """
    if not limit or hold is None:
        return None
    return Pacing(interval=max(1, hold // limit), burst=max(1, limit // BURST_SHARE))


def is_default(pacing: Pacing | None, limit: int | None, hold: int | None) -> bool:
    """Is this the default pacing of a pool? No pacing is it only for a pool without a hold."""
    if pacing is None:
        return hold is None
    return pacing == pacing_default(limit, hold)
