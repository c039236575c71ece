"""Nouns with a number, and the verb that agrees with them."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 unit`, `2 units`. The noun's plural must be regular."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    """Return `is` or `are`, whichever agrees with the number."""
    return "is" if count == 1 else "are"
