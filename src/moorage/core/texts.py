"""Which characters are allowed in names and in texts that are shown to other people."""

import re

from moorage.core.errors import Code, Error
from moorage.core.limits import IDENTIFIER_LENGTH_MAX

NAME_PATTERN = "^[A-Z0-9_]+$"
"""The pattern of the name of a resource class or consumer type, as in a JSON schema."""


def exact(pattern: str) -> str:
    """Return a pattern for Python, where `$` would also match before a final newline."""
    return pattern.replace("$", r"\Z")


_NAME = re.compile(exact(NAME_PATTERN))

_PATH = re.compile(r"[a-z0-9._-]+(/[a-z0-9._-]+)*")

_ACTED_ON = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line and paragraph separators, and marks that change text direction."""


def check_plain(what: str, text: str) -> None:
    """Raise INVALID if a text has a character that terminals interpret instead of showing it."""
    if text.isprintable():
        return
    found = _ACTED_ON.search(text)
    if found is not None:
        raise Error(Code.INVALID, f"{what} must not contain U+{ord(found[0]):04X}.")


def plain(text: str) -> str:
    """Return a text that `check_plain` accepts: U+FFFD stands for each refused character."""
    return text if text.isprintable() else _ACTED_ON.sub("\ufffd", text)


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
