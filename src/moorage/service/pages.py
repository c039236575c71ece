"""Cursors of paginated lists, oldest or newest first."""

from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import CURSOR_DIGITS_MAX, PAGE_MAX


class Place(NamedTuple):
    """The entry after which a page begins; entries are ordered by time, then id."""

    at: Instant
    id: str

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


START = Place(Instant(0), "")
END = Place(Instant(1 << 62), "")


def place_parse(text: str | None, default: Place) -> Place:
    """Parse the cursor of a page; None: `default`. Raises `Error`: INVALID."""
    if text is None:
        return default
    at, dot, entry = text.partition(".")
    if not (dot and at.isascii() and at.isdigit() and len(at) <= CURSOR_DIGITS_MAX):
        raise Error(
            Code.INVALID, f"{text!r} is not a cursor: use the value of `next` of the page before."
        )
    return Place(Instant(int(at)), entry)


def check_limit(limit: int) -> None:
    """Check the length of a page. Raises `Error`: INVALID."""
    if not 1 <= limit <= PAGE_MAX:
        raise Error(Code.INVALID, f"limit must be from 1 to {PAGE_MAX}.")
