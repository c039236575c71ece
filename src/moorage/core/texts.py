"""Which characters are allowed in names and in texts that are shown to other people."""

import re
from unicodedata import category

from moorage.core.errors import Code, Error
from moorage.core.limits import COMBINING_MARKS_MAX, DETAIL_LENGTH_MAX, IDENTIFIER_LENGTH_MAX

NAME_PATTERN = "^[A-Z0-9_]+$"
"""The pattern of the name of a resource class or consumer type, as in a JSON schema."""


def exact(pattern: str) -> str:
    """Return a pattern for Python, where `$` would also match before a final newline."""
    return pattern.replace("$", r"\Z")


_NAME = re.compile(exact(NAME_PATTERN))

_PATH = re.compile(r"[a-z0-9._-]+(/[a-z0-9._-]+)*")

_REFUSED = re.compile(
    # Control characters, line and paragraph separators, and marks that change text direction,
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    # and what is invisible without a use in names: spaces without a width, invisible operators,
    # deprecated formats, the byte order mark, annotations, and tags, which can hide a whole text.
    "\u00ad\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e00ff"
    # letters that show nothing, and formats of shorthand and of music.
    "\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
"""Joiners and variation selectors are allowed: some scripts and emoji need them. They count as
marks, because marks around a joiner stack on one letter, and many in a row hide a text."""

_MARKS = ("Mn", "Me", "Cf")

_PERHAPS_MARKS = re.compile(rf"[^\w\x00-\u02ff]{{{COMBINING_MARKS_MAX + 1}}}")
"""Finds each text with more: marks are neither letters nor digits, and begin at U+0300."""


def check_plain(what: str, text: str) -> None:
    """Raise INVALID for a character that is not simply shown, and for too many marks on one.

    Terminals and browsers obey it, or show nothing; a stack of marks covers the lines around it.
    """
    if text.isascii() and text.isprintable():
        return
    found = _REFUSED.search(text)
    if found is not None:
        raise Error(Code.INVALID, f"{what} must not contain U+{ord(found[0]):04X}.")
    if _with_few_marks(text) != text:
        raise Error(
            Code.INVALID,
            f"{what} must not contain more than {COMBINING_MARKS_MAX} combining marks or joiners"
            " in a row.",
        )


def check_reason(reason: str) -> None:
    """Raise INVALID unless this may be the reason of an operator; it may be empty."""
    if len(reason) > DETAIL_LENGTH_MAX:
        raise Error(Code.INVALID, f"reason must have at most {DETAIL_LENGTH_MAX} characters.")
    check_plain("reason", reason)


def plain(text: str) -> str:
    """Return a text that `check_plain` accepts, with U+FFFD for each refused character.

    Of too many combining marks in a row, the first ones are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return _with_few_marks(_REFUSED.sub("\ufffd", text))


def _with_few_marks(text: str) -> str:
    if _PERHAPS_MARKS.search(text) is None:
        return text
    kept, marks = [], 0
    for character in text:
        marks = marks + 1 if category(character) in _MARKS else 0
        if marks <= COMBINING_MARKS_MAX:
            kept.append(character)
    return "".join(kept)


def is_name(name: str) -> bool:
    """May a resource class or a consumer type have this name?"""
    return len(name) <= IDENTIFIER_LENGTH_MAX and _NAME.match(name) is not None


def check_path(what: str, name: str, length_max: int) -> None:
    """Raise INVALID for a name that could not be a path in a URL, or is too long."""
    if not _is_path(name, length_max):
        raise Error(Code.INVALID, f"{_valid(what, length_max)}, in parts joined by '/'.")


def check_segment(what: str, name: str, length_max: int) -> None:
    """As `check_path`, for a name that must be one segment of a path: it has no slash."""
    if "/" in name or not _is_path(name, length_max):
        raise Error(Code.INVALID, f"{_valid(what, length_max)}, and no slash.")


def _is_path(name: str, length_max: int) -> bool:
    dots = any(part in (".", "..") for part in name.split("/"))
    return len(name) <= length_max and _PATH.fullmatch(name) is not None and not dots


def _valid(what: str, length_max: int) -> str:
    return f"{what} must have 1 to {length_max} characters of a-z, 0-9, '.', '_' and '-'"
