"""Checks the history and the format of a SQLite file when it is opened."""

import logging

import apsw

from moorage.store.api import Unusable
from moorage.store.formats import FORMAT, outdated
from moorage.store.high_water_mark import Mark
from moorage.store.sql import blocks
from moorage.store.sqlite.file import translated

log = logging.getLogger("moorage.sqlite")


def clock_of(connection: apsw.Connection, revision: int = 0) -> tuple[Mark, int | None]:
    """Return the position of a database, and when it wrote `revision` (None: row was deleted)."""
    rows = connection.execute(
        "SELECT epoch, revision, (SELECT at FROM change WHERE revision = ? AND n = 0) FROM clock",
        (revision,),
    )
    ((epoch, reached, at),) = rows.fetchall()
    return Mark(int(str(epoch)), int(str(reached))), None if at is None else int(str(at))


def epoch_raise(connection: apsw.Connection, least: int) -> int:
    """Begin a new epoch, higher than `least`; return it. See `high_water_mark.epoch_raise`."""
    ((epoch, _),) = connection.execute(blocks("sqlite")["epoch_raise"], (least,)).fetchall()
    return int(str(epoch))


def checked(connection: apsw.Connection, path: str, mark: Mark) -> Mark:
    """Raise the epoch if the database lacks the revision of the mark; return the new mark."""
    with translated(f"compare {path} with its mark"):
        clock, at = clock_of(connection, mark.revision)
        if not mark.is_missed_by(clock, at):
            return max(clock, mark)
        epoch = epoch_raise(connection, mark.epoch)
    log.warning(
        "%s is at revision %d.%d and has been at %d.%d: it was put back to an earlier state; epoch "
        "%d begins, and fencing tokens and cursors issued since then are refused",
        *(path, clock.epoch, clock.revision, mark.epoch, mark.revision, epoch),
    )
    return Mark(epoch, clock.revision)


def format_checked(connection: apsw.Connection, path: str) -> bool:
    """Record the format of this release as a writer; return whether a newer one has written.

    Raises Unusable: only newer releases may write.
    """
    with translated(f"compare the format of {path}"):
        rows = connection.execute("SELECT minimum_version, newest_version FROM clock").fetchall()
        minimum, newest = [int(str(number)) for number in rows[0]]
        found = outdated(minimum, path)
        if found is not None:
            raise Unusable(f"{found}: use the newer release that wrote it")
        if newest < FORMAT:
            connection.execute("UPDATE clock SET newest_version = ?", (FORMAT,))
    return newest > FORMAT
