"""The Accept header: when a client gets JSON, and when an error page."""

import pytest

from moorage.faces.placement.negotiation import HTML, JSON, TEXT, accepts_json, error_type

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("APPLICATION/JSON", True),
        ("application/*;q=0.1", True),
        (BROWSER, True),
        ("not a header", True),
        ("text/plain", False),
        ("text/html,application/xml;q=0.9", False),
        ("application/json;q=0", False),
        ("*/*,application/json;q=0", False),
        ("application/json;version=1", False),
    ],
)
def test_json_is_admitted_by_the_most_specific_range(accept: str, expected: bool) -> None:
    """A range that names JSON overrides one that names everything."""
    assert accepts_json(accept) is expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("text/html", HTML),
        (BROWSER, HTML),
        ("text/plain", TEXT),
        ("text/html;q=0.5,application/json", JSON),
        ("image/png", TEXT),
        ("text/html;q=nonsense", HTML),
    ],
)
def test_errors_are_written_as_preferred(accept: str, expected: str) -> None:
    """Errors are JSON unless a page is preferred; plain text if neither is accepted."""
    assert error_type(accept) == expected
