"""Durations and times as people write them: `90`, `20m`, `1h30m`; `23:00`, `2026-11-27T04:31`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)


def seconds_of(text: str) -> float:
    """Return a duration in seconds; a bare number is seconds. Raises ValueError."""
    try:
        seconds = float(text)
    except ValueError:
        parts = [] if PART.sub("", text) else PART.findall(text)
        seconds = sum(float(number) * SECONDS[unit] for number, unit in parts) if parts else -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{text!r} is not a duration (for example 90s, 20m or 1h30m)")
    return seconds


def time_or_seconds(text: str, now: datetime, *, ahead: bool) -> datetime | float:
    """Return a date or time, of no zone: in UTC; or a duration in seconds. Raises ValueError.

    `23:00` is the next 23:00 after `now`, which is in UTC, or the last one if not `ahead`. Eight
    digits are a date if there is such a day. Needs Python 3.11.
    """
    from datetime import datetime, timezone  # deferred: single-file commands take only durations

    if TIME_OF_DAY.fullmatch(text):
        return _time_of_day(text, now, ahead)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            return seconds_of(text)
        except ValueError as error:
            wanted = "nor a date or time such as 23:00 or 2026-11-27T04:31"
            raise ValueError(f"{error}, {wanted}") from None
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)


def _time_of_day(text: str, now: datetime, ahead: bool) -> datetime:
    from datetime import timedelta  # deferred as above

    hour, minute = map(int, text.split(":"))
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    days = (at <= now) if ahead else -(at > now)
    return at + timedelta(days=days)
