"""Copies a SQLite database: backups while the service runs, restores while it is stopped."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from threading import Event, Thread
from threading import Lock as Guard
from typing import Any
from urllib.parse import quote

import apsw

from moorage.store.api import StoreError, Unusable
from moorage.store.directories import sync_directory
from moorage.store.migrations import migrations
from moorage.store.sqlite.file import (
    LOG_PAGES_MAX,
    PAGE,
    Lock,
    connect,
    log_end,
    log_is_long,
    translated,
)
from moorage.store.sqlite.history import clock_of, epoch_raise
from moorage.store.sqlite.migrate import migrate, pending
from moorage.store.unfinished import SUFFIX, Unfinished

Endable = Callable[[apsw.Connection], AbstractContextManager[Any]]

_under_way: set[str] = set()
"""Files to which this process is writing backups."""

_guard = Guard()

_LOOK_SECONDS = 0.1
"""How often to check the length of the log that another process writes."""


def copy(source: str, target: str, endable: Endable = nullcontext) -> None:
    """Write a complete, defragmented copy of the open database `source` to the new file `target`.

    The copy is one snapshot, and durable on return. Until then it is in a folder of its own, so
    that a file called `target` is always complete, and nobody else can read it. Raises Unusable:
    `target` exists, cannot be written, or is being written by another backup. Unavailable: the copy
    was interrupted.

    `endable` is entered with the reading connection, so that its owner can interrupt the copy.
    """
    with _alone(target), closing(Unfinished(target)) as unfinished:
        connection = connect(source, writes=False)
        try:
            with endable(connection), translated(f"copy to {target}"):
                connection.pragma("query_only", False)
                connection.execute("VACUUM INTO ?", (unfinished.path,))
        finally:
            connection.close(True)
        unfinished.publish()


def copy_beside(source: str, target: str, log_pages_max: int = LOG_PAGES_MAX) -> None:
    """Like `copy`, while another process may write to the database; ends if the log grows long."""
    copy(source, target, partial(_log_watched, source, log_pages_max))


def beginning_of(backup: str) -> int | None:
    """Return when the database was created of which a file is a backup; None: it is unreadable.

    It tells databases apart: all backups of one have the same, to the millisecond.
    """
    address = f"file:{quote(os.path.abspath(backup))}?immutable=1"
    try:
        connection = apsw.Connection(address, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        with closing(connection):
            ((at,),) = connection.execute("SELECT at FROM beginning")
    except (apsw.Error, ValueError):
        return None
    return int(at)


@contextmanager
def _log_watched(path: str, pages_max: int, connection: apsw.Connection) -> Iterator[None]:
    """Interrupt a read if the log of the database grows too long during it."""
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
    """Prevent other backups of this process to the same file. Raises Unusable."""
    if target.endswith(SUFFIX):
        raise Unusable(f"{target}: this name is reserved for unfinished backups; name another file")
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


def restore(backup: str, path: str) -> str | None:
    """Replace the database `path` by a copy of the file `backup`; raise the epoch.

    The database must not be in use. The old file is kept; returns its new name, or None if there
    was no database. The new epoch is higher than all earlier ones, so that tokens issued since the
    backup do not become valid again.

    Raises:
        Locked: a process uses the database.
        Unusable: the backup is empty, damaged, or not a database of this or an older release.
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
    """Return the epoch of the database to replace, 0 if it cannot be read."""
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
    """If run as root, give the files to the owner of the database, or else of its folder."""
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
    # Move the log first: SQLite would apply an old log to the restored file.
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{kept}{end}")
    os.link(path, kept)
    sync_directory(path)
    os.rename(restored, path)
    sync_directory(path)
    return kept


def _empty_log(path: str) -> None:
    """Copy the log into the file, if the file is not too damaged for that."""
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
