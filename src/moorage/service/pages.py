"""Pages of long lists, and the cursors between them.

A listing reads `rows_to_read` rows after the place of its cursor, and `page_of` cuts the page off.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import CURSOR_DIGITS_MAX, PAGE_MAX

T = TypeVar("T")


class PageMarker(NamedTuple):
    """The entry after which a page begins; entries are ordered by time, then id."""

    at: Instant
    id: str

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


START = PageMarker(Instant(0), "")
END = PageMarker(Instant(1 << 62), "")


def place_parse(text: str | None, default: PageMarker) -> PageMarker:
    """Parse the cursor of a page; None: `default`. Raises `Error`: INVALID."""
    if text is None:
        return default
    at, dot, entry = text.partition(".")
    if not (dot and at.isascii() and at.isdigit() and len(at) <= CURSOR_DIGITS_MAX):
        raise Error(
            Code.INVALID, f"{text!r} is not a cursor: use the value of `next` of the page before."
        )
    return PageMarker(Instant(int(at)), entry)


def check_limit(limit: int) -> None:
    """Check the length of a page. Raises `Error`: INVALID."""
    if not 1 <= limit <= PAGE_MAX:
        raise Error(Code.INVALID, f"limit must be from 1 to {PAGE_MAX}.")


def rows_to_read(limit: int) -> int:
    """Return how many rows to read for a page: one more than it has shows that another follows.

    Raises `Error`: INVALID if a page cannot have this length.
    """
    check_limit(limit)
    return limit + 1


def page_of(
    rows: Sequence[T], limit: int, place: Callable[[T], object]
) -> tuple[list[T], str | None]:
    """Cut a page off the rows that were read; return it and the cursor of the next page.

    Args:
        rows: up to `rows_to_read(limit)` rows.
        limit: the length of the page.
        place: returns the cursor after a row.

    Returns:
        None as the cursor: this is the last page.
    """
    found = list(rows[:limit])
    return found, str(place(found[-1])) if len(rows) > limit else None
