"""Entries that match one name or, as `PREFIX/*`, all names below the prefix."""

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
def test_names_that_an_entry_covers(entry: str, name: str, covered: bool) -> None:
    """An entry covers its name or everything after `PREFIX/`, but never the prefix alone."""
    assert covers(entry, name) is covered


@pytest.mark.parametrize("text", ["", "*", "/*", "a*", "*/b", "a/*/b", "a/**", "x" * 11])
def test_invalid_entries(text: str) -> None:
    """An asterisk is only allowed at the end, after a prefix and a slash; length is bounded."""
    assert not is_entry(text, 10)


@pytest.mark.parametrize("text", ["a", "a/b", "a/*", "a/b/*", "x" * 10])
def test_valid_entries(text: str) -> None:
    """Names and prefixes of names are entries."""
    assert is_entry(text, 10)
