"""List entries that match one name, or as `PREFIX/*` all names below a prefix."""

BELOW = "/*"
"""The suffix of an entry that matches all names below it."""


def covers(entry: str, name: str) -> bool:
    """Does an entry match this name?"""
    return name.startswith(entry[:-1]) if entry.endswith(BELOW) else name == entry


def is_entry(text: str, length_max: int) -> bool:
    """Is this a valid entry? The only asterisk is that of `PREFIX/*`; the prefix is not empty.

    Args:
        text: the entry.
        length_max: the most characters allowed.
    """
    return 1 <= len(text) <= length_max and text != BELOW and "*" not in text.removesuffix(BELOW)
