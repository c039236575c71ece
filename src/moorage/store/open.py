"""Picks the engine by the database's address; the only place that knows there is more than one."""

import os

from moorage.store import sqlite_copy, sqlite_file
from moorage.store.api import Engine, Unusable
from moorage.store.migrate import migrate as apply_migrations
from moorage.store.migrate import pending
from moorage.store.sqlite import CHECKPOINT_PAGES, SqliteEngine

_SQLITE = "sqlite:///"


def open_engine(
    url: str,
    *,
    migrate: bool = True,
    vfs: str | None = None,
    synchronous: str = "FULL",
    checkpoint_pages: int = CHECKPOINT_PAGES,
) -> Engine:
    """Open a database, made if it is not there; with `migrate` bring it up to date.

    `url`: `sqlite:///PATH` (relative) or `sqlite:////PATH` (absolute). `vfs`, `synchronous` and
    `checkpoint_pages` are for tests of durability; FULL is what keeps acknowledged writes.

    Raises:
        Locked: another process uses the database.
        Unusable: the address, the file or its schema cannot be used; the message says why.
    """
    path = sqlite_path(url)
    lock = sqlite_file.Lock(path)
    try:
        _prepare(path, migrate, vfs, synchronous)
    except BaseException:
        lock.release()
        raise
    return SqliteEngine(
        path, lock, vfs=vfs, synchronous=synchronous, checkpoint_pages=checkpoint_pages
    )


def restore(url: str, backup: str) -> str | None:
    """Replace a database that is not in use by a backup, see `sqlite_copy.restore`."""
    return sqlite_copy.restore(backup, sqlite_path(url))


def sqlite_path(url: str) -> str:
    """Return the absolute path of a SQLite address. Raises Unusable for any other address."""
    if url.startswith(("postgresql:", "postgres:")):
        raise Unusable("this release has SQLite only; use a database like sqlite:///moorage.db")
    path = url.removeprefix(_SQLITE)
    if path == url or not path or path.startswith(":") or "\0" in path or path.endswith("/"):
        raise Unusable(f"{url!r} is no database address; use sqlite:///PATH")
    return os.path.abspath(path)


def _prepare(path: str, migrate: bool, vfs: str | None, synchronous: str) -> None:
    if not migrate and not os.path.exists(path):
        raise Unusable(f"there is no database {path}; run `moorage db migrate`")
    sqlite_file.create(path)
    connection = sqlite_file.connect(path, writes=True, vfs=vfs, synchronous=synchronous)
    try:
        if migrate:
            apply_migrations(connection, path)
            sqlite_file.sync_directory(path)
        elif pending(connection, path):
            raise Unusable(f"the schema of {path} is older; run `moorage db migrate`")
    finally:
        connection.close(True)
