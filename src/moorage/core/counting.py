"""Counted words."""


def counted(count: int, noun: str) -> str:
    """Return a number of things: `1 unit`, `2 units`. The plural of the noun is regular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
