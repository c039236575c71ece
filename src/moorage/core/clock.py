"""Points in time, as the core sees them: handed in, never read."""

from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01T00:00:00Z."""


class Clock(Protocol):
    """Whatever can tell the time: the machine's clock, or a test's hand-driven one."""

    def now(self) -> Instant:
        """Return the current wall-clock time."""
        ...

    def monotonic(self) -> int:
        """Return microseconds that only ever pass, from an arbitrary start: no jumps."""
        ...
