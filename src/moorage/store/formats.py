"""The format of stored rows, and which releases may write them.

The database stores the oldest format that a writer must know (`clock.minimum_version`) and the
newest format of any process that has written (`clock.newest_version`). A release raises `FORMAT`
when it stores something that older releases do not know: a member of a JSON value, a kind of change
row. Older processes preserve members that they do not know (`unknown_members.py`), so several
releases can share a database. A newer release writes what older processes cannot handle, such as a
new kind of change row, only after a migration has raised `minimum_version`.
"""

from moorage.store.api import Outdated

FORMAT = 1
"""The newest format that this release knows; it is not a release number."""


def check(minimum: int, what: str) -> None:
    """Raise Outdated if this release is too old to write to a database."""
    found = outdated(minimum, what)
    if found is not None:
        raise Outdated(f"{found}: upgrade this process")


def outdated(minimum: int, what: str) -> str | None:
    """Return the reason why this release is too old to write to a database; None if it is not."""
    if minimum <= FORMAT:
        return None
    return (
        f"{what} needs a release that knows format {minimum} of its rows; this one knows format"
        f" {FORMAT}"
    )
