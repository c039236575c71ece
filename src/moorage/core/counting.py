"""Counted words, and the verb that goes with them."""


def counted(count: int, noun: str) -> str:
    """Return a number of things: `1 unit`, `2 units`. The plural of the noun is regular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    """Return the verb after a number of things."""
    return "is" if count == 1 else "are"
