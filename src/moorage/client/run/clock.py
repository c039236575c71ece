"""A clock that never jumps, and the time of day as text."""

from __future__ import annotations

import time
from datetime import datetime, timezone


def elapsed() -> float:
    """Return a time in seconds that never jumps and, if possible, includes time in suspension."""
    # macOS has no CLOCK_BOOTTIME: there CLOCK_MONOTONIC includes it, unlike time.monotonic().
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def instant() -> str:
    """Return the time of day in UTC, as in JSON."""
    now = time.clock_gettime(time.CLOCK_REALTIME)
    return datetime.fromtimestamp(now, timezone.utc).isoformat()
