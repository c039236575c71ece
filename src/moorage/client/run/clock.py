"""The clock of commands: it never jumps."""

from __future__ import annotations

import time


def elapsed() -> float:
    """Return a time that never jumps and goes on while the machine is suspended, if it can."""
    # macOS has no CLOCK_BOOTTIME: there it is CLOCK_MONOTONIC that goes on, not time.monotonic().
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
