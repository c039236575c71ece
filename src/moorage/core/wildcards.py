"""Entries of a list that stand for one name, or as `PREFIX/*` for all names below a prefix."""

BELOW = "/*"
"""How an entry ends that stands for all names below it."""


def covers(entry: str, name: str) -> bool:
    """Does an entry stand for this name?"""
    return name.startswith(entry[:-1]) if entry.endswith(BELOW) else name == entry


def is_entry(text: str, length_max: int) -> bool:
    """May a text be an entry? The only asterisk is that of `PREFIX/*`, and the prefix is not empty.

    Args:
        text: the entry.
        length_max: the most characters that it may have.
    """
    return 1 <= len(text) <= length_max and text != BELOW and "*" not in text.removesuffix(BELOW)
