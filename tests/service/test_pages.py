"""Pages of long lists: how many rows are read, and where each page ends."""

import pytest

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import PAGE_MAX
from moorage.service.pages import END, START, PageMarker, page_of, place_parse, rows_to_read


def pages(rows: list[str], limit: int) -> list[list[str]]:
    """Read a sorted list page by page, as a client that follows the cursors."""
    found, after = [], ""
    while True:
        read = [row for row in rows if row > after][: rows_to_read(limit)]
        page, following = page_of(read, limit, lambda row: row)
        found.append(page)
        if following is None:
            return found
        after = following


@pytest.mark.parametrize("limit", range(1, 9))
def test_pages_together_are_the_whole_list(limit: int) -> None:
    """Each row appears once, in order; all pages but the last are full, and none is empty."""
    rows = list("abcdefg")
    found = pages(rows, limit)
    assert [row for page in found for row in page] == rows
    assert all(len(page) == limit for page in found[:-1])
    assert 1 <= len(found[-1]) <= limit


def test_an_empty_list_is_one_empty_page() -> None:
    """It has no next page."""
    assert page_of([], 5, str) == ([], None)


@pytest.mark.parametrize("limit", [-1, 0, PAGE_MAX + 1])
def test_lengths_that_are_refused(limit: int) -> None:
    """A page has from 1 to `PAGE_MAX` entries."""
    with pytest.raises(Error, match=f"limit must be from 1 to {PAGE_MAX}") as refused:
        rows_to_read(limit)
    assert refused.value.code == Code.INVALID


def test_cursors_of_places() -> None:
    """A cursor is parsed back to its place; ids may contain dots. The default replaces None."""
    place = PageMarker(Instant(17), "a.b")
    assert str(place) == "17.a.b"
    assert place_parse(str(place), START) == place
    assert place_parse(None, END) == END
    for text in ("", "17", ".a", "-1.a", "\u0661.a"):
        with pytest.raises(Error) as refused:
            place_parse(text, START)
        assert refused.value.code == Code.INVALID
