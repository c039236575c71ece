"""How long an agent may be silent. Times are in microseconds of alive time.

Source: decision 0025; docs/concepts/fleet.md.
"""

from moorage.core.clock import SECOND

AGENTS_PER_SECOND = 50
"""Agents that make the TTL longer by one second: signs of life stay at about 100 per second."""

TTL_MIN = 10 * SECOND
"""The TTL of a small fleet."""

TTL_MAX = 60 * SECOND
"""The TTL of a large fleet."""

NEXT = 0.5
"""The share of the TTL after which the next sign of life is due."""

JITTER = 0.1
"""How much earlier or later it may be due, as a share of that."""


def ttl_of(agents: int, least: int = TTL_MIN, most: int = TTL_MAX) -> int:
    """Return after which silence an agent is late, given the number of agents."""
    return max(least, min(most, agents * SECOND // AGENTS_PER_SECOND))


def next_in(ttl: int, chance: float) -> int:
    """Return when the next sign of life is due; `chance` is random, from 0 to 1."""
    return round(ttl * NEXT * (1 + JITTER * (2 * chance - 1)))
