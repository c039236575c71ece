"""Which owners are of a project, and every other rule that compares names by their beginning."""

import pytest

from moorage.core.admission.owners import is_foreign, is_reserved, project_of
from moorage.core.wildcards import covers

OWNERS = [
    ("pa/ann", "pa"),
    ("pa/b/ann", "pa/b"),
    ("pa/b/c/ann", "pa/b/c"),
    ("pab/ann", "pab"),
    ("ann", None),
    ("/ann", ""),
]


@pytest.mark.parametrize(("owner", "project"), OWNERS)
def test_the_project_of_an_owner(owner: str, project: str | None) -> None:
    """All before the last slash: names of projects have slashes, those of users have none."""
    assert project_of(owner) == project
    for other in ("pa", "pa/b", "pab", "p", "pa/", "ann"):
        assert (project_of(owner) == other) == (project == other)


@pytest.mark.parametrize(
    ("entry", "name", "expected"),
    [
        ("pa/*", "pa/b", True),
        ("pa/*", "pa/b/c", True),
        ("pa/*", "pa", False),
        ("pa/*", "pab", False),
        ("pa/*", "pab/c", False),
        ("pa", "pa/b", False),
        ("pa/b", "pa", False),
    ],
)
def test_scopes_end_at_a_slash(entry: str, name: str, expected: bool) -> None:
    """An entry `PREFIX/*` is for names below the prefix, not for those that begin with it."""
    assert covers(entry, name) is expected


@pytest.mark.parametrize(
    ("owner", "foreign", "reserved"),
    [
        ("boskos:ci", True, True),
        ("boskos", False, False),
        ("boskosx", False, False),
        ("governor:hosts", False, True),
        ("governor", False, False),
    ],
)
def test_owners_that_are_no_names(owner: str, foreign: bool, reserved: bool) -> None:
    """The colon belongs to the prefix."""
    assert (is_foreign(owner), is_reserved(owner)) == (foreign, reserved)
