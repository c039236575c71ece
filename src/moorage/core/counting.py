"""Numbers as words: nouns with their count, the verb that agrees with them, and durations."""

from moorage.core.clock import SECOND


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 unit`, `2 units`. The noun's plural must be regular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    """Return `is` or `are`, whichever agrees with the number."""
    return "is" if count == 1 else "are"


def span(microseconds: int) -> str:
    """Return a duration in words, rounded up: `12 s`, `3 min`, `2 h 5 min`, `12 d 3 h`."""
    seconds = max(1, -(-microseconds // SECOND))
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours + (minutes > 0), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
