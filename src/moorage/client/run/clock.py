"""A clock that never jumps; times of day as text, for every Python from 3.9 on."""

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


def instant_of(text: str) -> datetime:
    """Return a time of an answer. Raises ValueError.

    `datetime.fromisoformat` of older Pythons knows neither Z nor other than three or six digits
    after the point.
    """
    whole, point, rest = text.replace("Z", "+00:00").partition(".")
    if not point:
        return datetime.fromisoformat(whole)
    length = len(rest) - len(rest.lstrip("0123456789"))
    return datetime.fromisoformat(f"{whole}.{rest[:length]:0<6}{rest[length:]}")


def second_of(text: str) -> str:
    """Return a time of an answer for people: to the second. Raises ValueError."""
    return instant_of(text).isoformat(timespec="seconds")
