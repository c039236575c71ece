"""Durations as people write them: `90`, `20m`, `1h30m`."""

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
