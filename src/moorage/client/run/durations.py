"""Formats durations for people."""

from __future__ import annotations

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
