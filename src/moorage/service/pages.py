"""Places in lists that are told page by page, oldest or newest first."""

from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import PAGE_MAX

DIGITS_MAX = 18


class Place(NamedTuple):
    """After which entry a page begins: they are ordered by time, then id."""

    at: Instant
    id: str

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


START = Place(Instant(0), "")
END = Place(Instant(1 << 62), "")


def place_parse(text: str | None, default: Place) -> Place:
    """Read a cursor that a page has told; None: `default`. Raises `Error`: INVALID."""
    if text is None:
        return default
    at, dot, entry = text.partition(".")
    if not (dot and at.isascii() and at.isdigit() and len(at) <= DIGITS_MAX):
        raise Error(Code.INVALID, f"{text!r} is no cursor: take the one in `next`.")
    return Place(Instant(int(at)), entry)


def check_limit(limit: int) -> None:
    """Raise `Error`: INVALID for a page that is empty or too long."""
    if not 1 <= limit <= PAGE_MAX:
        raise Error(Code.INVALID, f"limit is 1 to {PAGE_MAX}.")
