"""A clock that never jumps."""

from __future__ import annotations

import time


def elapsed() -> float:
    """Return a time in seconds that never jumps and, if possible, includes time in suspension."""
    # macOS has no CLOCK_BOOTTIME: there CLOCK_MONOTONIC includes it, unlike time.monotonic().
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
