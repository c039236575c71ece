"""The TTL of agents: after which silence one is late, and when it is heard next; in microseconds.

The settings have these bounds, so this imports nothing that takes long. Source: decision 0025.
"""

from typing import NamedTuple

from moorage.core.clock import SECOND

AGENTS_PER_SECOND = 50
"""Agents that make the TTL longer by one second: signs of life stay at about 100 per second."""

NEXT = 0.5
"""The share of the TTL after which the next sign of life is due."""

JITTER = 0.1
"""How much earlier or later it may be due, as a share of that."""


class TtlRange(NamedTuple):
    """The TTLs of a small and of a large fleet, in microseconds."""

    least: int = 10 * SECOND
    most: int = 60 * SECOND


TTL_RANGE = TtlRange()
"""The default; the settings `fleet_ttl_min` and `fleet_ttl_max` override it."""


def ttl_of(agents: int, bounds: TtlRange = TTL_RANGE) -> int:
    """Return after which silence an agent is late, given the number of agents."""
    return max(bounds.least, min(bounds.most, agents * SECOND // AGENTS_PER_SECOND))


def next_in(ttl: int, chance: float) -> int:
    """Return when the next sign of life is due; `chance` is random, from 0 to 1."""
    return round(ttl * NEXT * (1 + JITTER * (2 * chance - 1)))
