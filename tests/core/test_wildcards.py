"""Entries that stand for one name or, as `PREFIX/*`, for all names below."""

import pytest

from moorage.core.wildcards import covers, is_entry


@pytest.mark.parametrize(
    ("entry", "name", "covered"),
    [
        ("ci/azure", "ci/azure", True),
        ("ci/azure", "ci/azure-4", False),
        ("ci/*", "ci/azure", True),
        ("ci/*", "ci/azure/4", True),
        ("ci/*", "ci", False),
        ("ci/*", "cicada/azure", False),
    ],
)
def test_what_an_entry_covers(entry: str, name: str, covered: bool) -> None:
    """The name itself, or everything behind the prefix and its slash; never the prefix alone."""
    assert covers(entry, name) is covered


@pytest.mark.parametrize("text", ["", "*", "/*", "a*", "*/b", "a/*/b", "a/**", "x" * 11])
def test_what_is_no_entry(text: str) -> None:
    """An asterisk stands at the end, behind a prefix and a slash; the length has a bound."""
    assert not is_entry(text, 10)


@pytest.mark.parametrize("text", ["a", "a/b", "a/*", "a/b/*", "x" * 10])
def test_what_is_an_entry(text: str) -> None:
    """Names, and prefixes of them."""
    assert is_entry(text, 10)
