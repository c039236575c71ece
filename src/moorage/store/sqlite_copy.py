"""Copies of a SQLite database: a backup while the service runs, a restore while it does not."""

import os
from contextlib import suppress

import apsw

from moorage.store.api import StoreError, Unusable
from moorage.store.migrate import migrate
from moorage.store.sqlite_file import Lock, connect, create, log_end, sync_directory, translated


def copy(source: str, target: str) -> None:
    """Write a complete, defragmented copy of the open database `source` to the new file `target`.

    It is one snapshot, and durable on return. Until then it has another name, so that a file
    called `target` is always complete. Raises Unusable: `target` exists or cannot be written.
    """
    if os.path.lexists(target):
        raise Unusable(f"{target} exists; name a new file")
    partial = f"{target}.partial"
    with suppress(FileNotFoundError):
        os.unlink(partial)
    create(partial)
    try:
        connection = connect(source, writes=False)
        try:
            with translated(f"copy to {target}"):
                connection.pragma("query_only", False)
                connection.execute("VACUUM INTO ?", (partial,))
        finally:
            connection.close(True)
        _sync(partial)
        os.rename(partial, target)
        sync_directory(target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def restore(backup: str, path: str) -> str | None:
    """Put a copy of the file `backup` in the place of the database `path`; raise the epoch.

    The database must not be in use. The old file is kept; its new name is returned, None if there
    was no database. The epoch becomes higher than any before, so that no token that was given out
    since the backup is valid again.

    Raises:
        Locked: a process uses the database.
        Unusable: the backup is no database of this or an older release, or is damaged.
    """
    if not os.path.isfile(backup):
        raise Unusable(f"cannot read the backup {backup}: no such file")
    lock = Lock(path)
    partial = f"{path}.restoring"
    try:
        for name in (partial, f"{partial}-wal", f"{partial}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(name)
        _check(backup)
        copy(backup, partial)
        epoch = max(_epoch(path), lock.epoch())
        _raise_epoch(partial, epoch, lock)
        return _replace(partial, path)
    finally:
        lock.release()


def _check(path: str) -> None:
    connection = connect(path, writes=False)
    try:
        with translated(f"check {path}"):
            found = connection.pragma("integrity_check")
    except StoreError as error:
        raise Unusable(f"the backup {path} cannot be used: {error}") from error
    finally:
        connection.close(True)
    if found != "ok":
        raise Unusable(f"the backup {path} is damaged: {found}")


def _epoch(path: str) -> int:
    """Return the epoch of the database that is replaced, 0 if it cannot be read."""
    if not os.path.exists(path):
        return 0
    try:
        connection = connect(path, writes=False)
    except StoreError:
        return 0
    try:
        return _epoch_of(connection)
    except (apsw.Error, ValueError):
        return 0
    finally:
        connection.close(True)


def _epoch_of(connection: apsw.Connection) -> int:
    ((epoch,),) = connection.execute("SELECT epoch FROM clock").fetchall()
    return int(str(epoch))


def _raise_epoch(path: str, epoch: int, lock: Lock) -> None:
    connection = connect(path, writes=True)
    try:
        migrate(connection, path)
        with translated(f"raise the epoch of {path}"):
            raised = max(epoch, _epoch_of(connection)) + 1
            lock.remember(raised)
            connection.execute("UPDATE clock SET epoch = ?", (raised,))
        log_end(connection)
    finally:
        connection.close(True)
    _sync(path)


def _replace(partial: str, path: str) -> str | None:
    if not os.path.exists(path):
        os.rename(partial, path)
        sync_directory(path)
        return None
    kept = _free_name(f"{path}.before-restore")
    _empty_log(path)
    # A log that stayed behind would be applied to the restored file, so it leaves first.
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{kept}{end}")
    os.link(path, kept)
    sync_directory(path)
    os.rename(partial, path)
    sync_directory(path)
    return kept


def _empty_log(path: str) -> None:
    """Bring what is in the log into the file, if the file is sound enough for that."""
    with suppress(StoreError, apsw.Error):
        connection = connect(path, writes=True)
        try:
            log_end(connection)
        finally:
            connection.close(True)


def _free_name(wanted: str) -> str:
    number, name = 1, wanted
    while os.path.lexists(name):
        number += 1
        name = f"{wanted}-{number}"
    return name


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
