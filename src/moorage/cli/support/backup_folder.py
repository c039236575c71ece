"""A folder with the newest backups of one database: their names, and which are deleted."""

import os
import re
from datetime import datetime

NAME = re.compile(r"moorage-\d{8}T\d{6}Z\.sqlite")
"""The names of backups that may be deleted; no others are."""

UNFINISHED = ".partial"
"""What a killed backup leaves behind ends with it."""


def backup_name(at: datetime) -> str:
    """Return the name of a backup that is made at a time in UTC; later ones sort behind it."""
    return f"moorage-{at:%Y%m%dT%H%M%S}Z.sqlite"


def thinned(folder: str, keep: int, newest: str) -> list[str]:
    """Delete all but the newest backups, and older unfinished ones; return the paths.

    Args:
        folder: has them, perhaps with other files.
        keep: how many are kept.
        newest: the name of the one that was just made: what is unfinished and older is left over.

    Raises:
        OSError: one cannot be deleted.
    """
    names = sorted(os.listdir(folder))
    complete = [name for name in names if NAME.fullmatch(name)]
    left_over = [
        name
        for name in names
        if name.endswith(UNFINISHED)
        and NAME.fullmatch(name.removesuffix(UNFINISHED))
        and name < newest
    ]
    gone = [os.path.join(folder, name) for name in complete[:-keep] + left_over]
    for path in gone:
        os.unlink(path)
    return gone
