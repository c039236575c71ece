"""Which characters are allowed in names that are shown to other people."""

import re

from moorage.core.errors import Code, Error

_ACTED_ON = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line and paragraph separators, and marks that change text direction."""


def check_plain(what: str, text: str) -> None:
    """Raise INVALID if a text has a character that terminals interpret instead of showing it."""
    if text.isprintable():
        return
    found = _ACTED_ON.search(text)
    if found is not None:
        raise Error(Code.INVALID, f"{what} must not contain U+{ord(found[0]):04X}.")
