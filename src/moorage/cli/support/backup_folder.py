"""A folder with the newest backups of one database: their names, and which of them are deleted."""

import os
import re
import stat
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from moorage.store import unfinished
from moorage.store.open import beginning_of

NAME = re.compile(r"moorage-\d{8}T\d{6}Z\.sqlite")
"""The names of backups that may be deleted; no others are."""


class Thinned(NamedTuple):
    """What became of the older backups."""

    deleted: list[str]
    """Their paths."""
    problems: list[str]
    """Why some could not be deleted, or cannot be compared; each says what to do."""


def backup_name(at: datetime) -> str:
    """Return the name of a backup that is made at a time in UTC; later ones sort behind it."""
    return f"moorage-{at:%Y%m%dT%H%M%S}Z.sqlite"


def thinned(folder: str, keep: int, newest: str, now: str) -> Thinned:
    """Delete all but the newest backups, and older ones that were left unfinished.

    What is later than now is neither counted nor deleted: the clock was wrong then, or is wrong
    now, so its name does not say which backups are old. Nor is what is of another database.

    Args:
        folder: has them, perhaps with other files.
        keep: how many are kept.
        newest: the name of the one that was just made: it stays, and what is unfinished and older
            is left over.
        now: the name of a backup that is made now.
    """
    names = sorted(os.listdir(folder))
    complete = [name for name in names if NAME.fullmatch(name) and _is_file(folder, name)]
    others = _of_others(folder, complete, newest)
    complete = [name for name in complete if name not in others]
    old = [name for name in complete if name <= now]
    left_over = [
        name
        for name in names
        if name.endswith(unfinished.SUFFIX)
        and NAME.fullmatch(name.removesuffix(unfinished.SUFFIX))
        and name < newest
    ]
    found = Thinned([], [])
    for name in [*(one for one in old[:-keep] if one != newest), *left_over]:
        path = os.path.join(folder, name)
        try:
            if name in left_over and not _is_file(folder, name):
                unfinished.remove(path)
            else:
                os.unlink(path)
            found.deleted.append(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # another process is writing it, or has deleted it
        except OSError as error:
            found.problems.append(f"cannot delete {path}: {error.strerror}")
    found.problems.extend(
        f"{os.path.join(folder, name)} is from the future: check the clock, then rename it"
        for name in complete
        if name > now
    )
    if others:
        found.problems.append(
            f"{os.path.join(folder, others[0])} is of another database, so it is not deleted: use a"
            " folder for each"
        )
    return found


def _of_others(folder: str, names: list[str], newest: str) -> list[str]:
    """Return the backups of other databases than that of the newest one."""
    beginnings = {name: beginning_of(os.path.join(folder, name)) for name in names}
    own = beginnings.get(newest)
    return [name for name, at in beginnings.items() if None not in (own, at) and at != own]


def _is_file(folder: str, name: str) -> bool:
    """Return whether this is a file. Another process may have deleted it meanwhile."""
    with suppress(FileNotFoundError):
        return stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)
    return False
