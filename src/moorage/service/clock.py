"""The machine's clock."""

import time

from moorage.core.clock import Instant


class SystemClock:
    """Wall-clock time of this machine."""

    def now(self) -> Instant:
        """Return the current time in microseconds since the epoch."""
        return Instant(time.time_ns() // 1_000)

    def monotonic(self) -> int:
        """Return the microseconds since an arbitrary point in time; never jumps."""
        return time.monotonic_ns() // 1_000
