"""The format of stored rows, and who may write them.

The database says which format a process must know to write (`clock.minimum_version`), and the
newest format of any process that has written (`clock.newest_version`). A release raises `FORMAT`
when it stores something that older releases do not know: a member of a JSON value, a kind of change
row. Older processes keep members that they do not know (`keeping.py`), so that several releases can
share a database. What they cannot be trusted with, a new kind of change row among them, the newer
release writes only after a migration has raised `minimum_version`.
"""

from moorage.store.api import Outdated

FORMAT = 1
"""The newest format that this release knows. It is no release's number."""


def check(minimum: int, what: str) -> None:
    """See whether this release may work with a database. Raises Outdated: it is too old."""
    if minimum > FORMAT:
        raise Outdated(
            f"{what} needs a release that knows format {minimum} of its rows; this one knows "
            f"format {FORMAT}: upgrade this process"
        )
