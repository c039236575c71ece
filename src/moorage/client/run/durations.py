"""Parses durations such as `90`, `20m`, `1h30m`, and formats durations for people."""

from __future__ import annotations

import re

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def seconds_of(text: str) -> float:
    """Return a duration in seconds; a bare number is seconds. Raises ValueError."""
    try:
        return _not_negative(float(text))
    except ValueError:
        pass
    if not text or PART.sub("", text):
        raise ValueError(f"{text!r} is not a duration (for example 90s, 20m or 1h30m)")
    return sum(float(number) * SECONDS[unit] for number, unit in PART.findall(text))


def _not_negative(seconds: float) -> float:
    if not 0 <= seconds < float("inf"):
        raise ValueError("a duration must not be negative")
    return seconds


OVERDUE = "longer than usual"
"""Shown for an estimate that has passed."""

SOON = "any moment now"

OVERDUE_SECONDS = 5.0
"""How long an estimate must have passed before `OVERDUE` is shown."""


def eta_spoken(earliest: float, latest: float) -> str:
    """Format a range of seconds for people: `9s`, `3s to 5s`, `up to 5s`; `SOON`, `OVERDUE`."""
    if latest < -OVERDUE_SECONDS:
        return OVERDUE
    if round(latest) <= 0:
        return SOON
    low, high = spoken(earliest), spoken(latest)
    if round(earliest) <= 0:
        return f"up to {high}"
    return high if low == high else f"{low} to {high}"


def spoken(seconds: float) -> str:
    """Format a duration for people, in at most two units: `3s`, `1m20s`, `2h05m`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if minutes else f"{hours}h"
