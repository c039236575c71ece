"""Points in time. The core receives them as arguments and never reads a clock."""

from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000_000
"""Microseconds."""

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Clock(Protocol):
    """A source of time: the machine's clock, or a manual one in tests."""

    def now(self) -> Instant:
        """Return the current wall-clock time."""
        ...

    def monotonic(self) -> int:
        """Return microseconds since an arbitrary start, without jumps."""
        ...
