"""Copies of a SQLite database: a backup while the service runs, a restore while it does not."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import Event, Thread
from threading import Lock as Guard
from typing import Any

import apsw

from moorage.store.api import StoreError, Unusable
from moorage.store.migrations import migrations
from moorage.store.sqlite.file import (
    LOG_PAGES_MAX,
    PAGE,
    Lock,
    connect,
    log_end,
    log_is_long,
    sync_directory,
    translated,
)
from moorage.store.sqlite.history import clock_of, epoch_raise
from moorage.store.sqlite.migrate import migrate, pending

Endable = Callable[[apsw.Connection], AbstractContextManager[Any]]

_under_way: set[str] = set()
"""Files that backups of this process are being written to."""

_guard = Guard()

_UNFINISHED = ".partial"
"""The end of the name of a file that is being written."""

_LOOK_SECONDS = 0.1
"""How often to look at the log of another process."""


def copy(source: str, target: str, endable: Endable = nullcontext) -> None:
    """Write a complete, defragmented copy of the open database `source` to the new file `target`.

    It is one snapshot, and durable on return. Until then it has another name, so that a file
    called `target` is always complete. Raises Unusable: `target` exists, cannot be written, or is
    being written by another backup. Unavailable: it was ended.

    `endable` is entered with the connection that reads, for whoever may have to end it.
    """
    with _alone(target):
        unfinished = f"{target}{_UNFINISHED}"
        with suppress(FileNotFoundError):
            os.unlink(unfinished)  # of a process that was killed
        ours = _made(unfinished)
        try:
            connection = connect(source, writes=False)
            try:
                with endable(connection), translated(f"copy to {target}"):
                    connection.pragma("query_only", False)
                    connection.execute("VACUUM INTO ?", (unfinished,))
            finally:
                connection.close(True)
            os.fsync(ours)
            _publish(unfinished, target, ours)
        except BaseException:
            if _is(unfinished, ours):
                os.unlink(unfinished)
            raise
        finally:
            os.close(ours)


def copy_beside(source: str, target: str, log_pages_max: int = LOG_PAGES_MAX) -> None:
    """As `copy`, while another process may write to the database, which cannot end this read."""
    copy(source, target, partial(_log_watched, source, log_pages_max))


@contextmanager
def _log_watched(path: str, pages_max: int, connection: apsw.Connection) -> Iterator[None]:
    """End a read once the log of the database has grown too long meanwhile."""
    done = Event()
    began = _log_pages(path)

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            pages = _log_pages(path)
            with suppress(OSError):
                if pages > began and log_is_long(path, pages, pages_max):
                    connection.interrupt()

    watching = Thread(target=watch, name="moorage-log", daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


def _log_pages(path: str) -> int:
    try:
        return os.stat(f"{path}-wal").st_size // PAGE
    except OSError:
        return 0


@contextmanager
def _alone(target: str) -> Iterator[None]:
    """Keep other backups of this process from the same file. Raises Unusable."""
    if target.endswith(_UNFINISHED):
        raise Unusable(f"{target}: only an unfinished backup is called so; name another file")
    name = os.path.realpath(target)
    with _guard:
        if name in _under_way:
            raise Unusable(f"another backup is being written to {target}; name a new file")
        if os.path.lexists(target):
            raise Unusable(f"{target} exists; name a new file")
        _under_way.add(name)
    try:
        yield
    finally:
        with _guard:
            _under_way.remove(name)


def _made(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unusable(f"cannot make {path}: {error.strerror}") from error


def _is(path: str, file: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(file))
    return False


def _publish(partial: str, target: str, ours: int) -> None:
    """Give a file that is complete its name. Raises Unusable: somebody else was at it, too."""
    if not _is(partial, ours):
        raise Unusable(f"another process has replaced {partial}; name another file")
    if os.path.lexists(target):
        raise Unusable(f"{target} was made meanwhile; name a new file")
    os.rename(partial, target)
    sync_directory(target)


def restore(backup: str, path: str) -> str | None:
    """Put a copy of the file `backup` in the place of the database `path`; raise the epoch.

    The database must not be in use. The old file is kept; its new name is returned, None if there
    was no database. The epoch becomes higher than any before, so that no token that was given out
    since the backup is valid again.

    Raises:
        Locked: a process uses the database.
        Unusable: the backup is no database of this or an older release, is empty, or is damaged.
    """
    if not os.path.isfile(backup):
        raise Unusable(f"cannot read the backup {backup}: no such file")
    lock = Lock(path)
    restored = f"{path}.restoring"
    try:
        _remove(restored)
        _check(backup)
        copy(backup, restored)
        epoch = max(_epoch(path), lock.mark().epoch)
        _raise_epoch(restored, epoch, lock)
        _given(path, restored, lock.path)
        return _replace(restored, path)
    finally:
        _remove(restored)
        lock.release()


def _remove(path: str) -> None:
    for name in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(FileNotFoundError):
            os.unlink(name)


def _check(path: str) -> None:
    connection = connect(path, writes=False)
    try:
        with translated(f"check {path}"):
            found = connection.pragma("integrity_check")
            if found == "ok" and len(pending(connection, path)) == len(migrations("sqlite")):
                raise Unusable("it is empty")
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
        return clock_of(connection)[0].epoch
    except (apsw.Error, ValueError):
        return 0
    finally:
        connection.close(True)


def _raise_epoch(path: str, epoch: int, lock: Lock) -> None:
    connection = connect(path, writes=True)
    try:
        migrate(connection, path)
        with translated(f"raise the epoch of {path}"):
            lock.remember(epoch_raise(connection, epoch))
        log_end(connection)
    finally:
        connection.close(True)
    _sync(path)


def _given(path: str, *files: str) -> None:
    """Let files that root has made belong to whom the database does, or else its folder."""
    if os.geteuid() == 0:
        whose = os.stat(path if os.path.exists(path) else os.path.dirname(path))
        for file in files:
            os.chown(file, whose.st_uid, whose.st_gid)


def _replace(restored: str, path: str) -> str | None:
    if not os.path.exists(path):
        os.rename(restored, path)
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
    os.rename(restored, path)
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
