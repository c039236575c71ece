"""Reads the change log page by page, for clients that follow it."""

from typing import NamedTuple

from moorage.store.api import Plan, Query
from moorage.store.changelog import KINDS, unknown


class ChangeRow(NamedTuple):
    """One change as it was written; `body` is JSON, None if the object was deleted."""

    revision: int
    n: int
    kind: str
    key: str
    body: str | None


class ChangesWindow(NamedTuple):
    """Change rows in order, and the clock as of the same moment."""

    epoch: int
    revision: int
    """The newest revision."""
    compacted: int
    """Rows of this revision and older ones were deleted."""
    rows: list[ChangeRow]


def changes_window(revision: int, n: int, rows_max: int) -> Plan[ChangesWindow]:
    """Load the change rows after (revision, n), oldest first, at most `rows_max` of them.

    Raises Outdated: one of them is of a kind that this release does not know.
    """
    (rows,) = yield [Query("changes_window", (revision, n, rows_max))]
    epoch, newest, compacted = rows[0][:3]
    changes = [ChangeRow(*row[3:]) for row in rows if row[3] is not None]
    for change in changes:
        if change.kind not in KINDS:
            raise unknown(change.kind)
    return ChangesWindow(epoch, newest, compacted, changes)
