"""Selects the engine by the database's address; the only module that knows all engines."""

import os
from typing import NamedTuple

from moorage.extras import needs
from moorage.store.addresses import is_postgres, sqlite_path
from moorage.store.api import Engine, Unusable
from moorage.store.directories import sync_directory
from moorage.store.high_water_mark import Mark
from moorage.store.migrations import Migration, migrations
from moorage.store.sqlite import copy as sqlite_copy
from moorage.store.sqlite import file, history
from moorage.store.sqlite.engine import CHECKPOINT_PAGES, SqliteEngine
from moorage.store.sqlite.file import LOG_PAGES_MAX
from moorage.store.sqlite.migrate import migrate as apply_migrations
from moorage.store.sqlite.migrate import pending


def open_engine(
    url: str,
    *,
    migrate: bool = True,
    vfs: str | None = None,
    synchronous: str = "FULL",
    checkpoint_pages: int = CHECKPOINT_PAGES,
    log_pages_max: int = LOG_PAGES_MAX,
    epoch_file: str | None = None,
) -> Engine:
    """Open a database; with `migrate`, create or update its schema (and create a SQLite file).

    `url`: `sqlite:///PATH` (relative), `sqlite:////PATH` (absolute) or `postgresql://...`, as
    in libpq. `vfs`, `synchronous`, `checkpoint_pages` and `log_pages_max` are for durability tests
    on SQLite; only `synchronous` FULL keeps acknowledged writes. `epoch_file`: stores the newest
    revision seen in a PostgreSQL database; SQLite uses PATH.lock.

    Raises:
        Locked: another process uses the database file.
        Unavailable: the server does not answer.
        Unusable: the address, the file or its schema cannot be used; the message says why.
    """
    if is_postgres(url):
        return _open_postgres(url, migrate, epoch_file)
    path = sqlite_path(url)
    lock = file.Lock(path)
    try:
        newer = _prepare(path, lock, migrate, vfs, synchronous)
    except BaseException:
        lock.release()
        raise
    return SqliteEngine(
        path,
        lock,
        vfs=vfs,
        synchronous=synchronous,
        checkpoint_pages=checkpoint_pages,
        log_pages_max=log_pages_max,
        newer=newer,
    )


class Schema(NamedTuple):
    """The schema of a database, and that of this release, by the names of their migrations."""

    applied: str | None
    """The newest migration of the database; None: it has no schema, or does not exist."""
    newest: str

    @property
    def is_current(self) -> bool:
        """Whether no migration is missing."""
        return self.applied == self.newest


def schema_of(url: str) -> Schema:
    """Return the schema of a database, even if another process is using it. It changes nothing.

    Raises Unavailable: the server does not answer. Unusable: it is not a database of Moorage, or a
    newer release has written it.
    """
    if is_postgres(url):
        try:
            from moorage.store.postgres.migrate import pending_of
        except ImportError as error:
            raise Unusable(f"PostgreSQL {needs('postgres', error)}") from error
        lacking, known = pending_of(url), migrations("postgres")
    else:
        path, known = sqlite_path(url), migrations("sqlite")
        lacking = known
        if _has_content(path):
            lacking = _pending_of(path)
    applied = [_name_of(migration) for migration in known if migration not in lacking]
    newest = _name_of((lacking or known)[-1])
    return Schema(applied[-1] if applied else None, newest)


def _name_of(migration: Migration) -> str:
    return f"{migration.number:04}_{migration.name}"


def restore(url: str, backup: str) -> str | None:
    """Replace a database that is not in use by a backup, see `sqlite/copy.py`.

    Raises Unusable for PostgreSQL, which has its own tools.
    """
    if is_postgres(url):
        raise Unusable(
            "`moorage db restore` is for SQLite; use PostgreSQL's tools, then run"
            " `moorage db epoch raise`"
        )
    return sqlite_copy.restore(backup, sqlite_path(url))


def _open_postgres(url: str, migrate: bool, epoch_file: str | None) -> Engine:
    try:
        from moorage.store.postgres import migrate as postgres_migrate
        from moorage.store.postgres import probe
        from moorage.store.postgres.engine import PostgresEngine
    except ImportError as error:
        raise Unusable(f"PostgreSQL {needs('postgres', error)}") from error
    try:
        engine = PostgresEngine(url, epoch_file)
    except ValueError as error:
        raise Unusable(f"this is not the address of a database: {error}") from None
    if migrate:
        postgres_migrate.migrate(url)
    else:
        postgres_migrate.check_current(url)
    probe.check(url)
    return engine


def copy(path: str, target: str) -> None:
    """Write a complete copy of a SQLite file to a new file, even if another process is using it.

    Raises Unusable: the file cannot be read; `target` exists or cannot be written. Unavailable:
    the log grew too long during the copy.
    """
    sqlite_copy.copy_beside(path, target)


def beginning_of(backup: str) -> int | None:
    """Return what all backups of one database have in common, see `sqlite/copy.py`."""
    return sqlite_copy.beginning_of(backup)


def _prepare(path: str, lock: file.Lock, migrate: bool, vfs: str | None, sync: str) -> bool:
    """Create or check the file; return whether a newer release has written to it."""
    if _has_content(path):
        _pending_of(path, vfs)  # the database of another program stays as it is, journal and all
    else:
        _check_new(path, lock.mark(), migrate)
    file.create(path)
    connection = file.connect(path, writes=True, vfs=vfs, synchronous=sync)
    try:
        if migrate:
            apply_migrations(connection, path)
            sync_directory(path)
        elif pending(connection, path):
            raise Unusable(f"the schema of {path} is older; run `moorage db migrate`")
        newer = history.format_checked(connection, path)
        lock.reached(history.checked(connection, path, lock.mark()))
        return newer
    finally:
        connection.close(True)


def _pending_of(path: str, vfs: str | None = None) -> list[Migration]:
    """Return the migrations that a file lacks, and change nothing. Raises Unusable."""
    connection = file.connect(path, writes=False, vfs=vfs)
    try:
        return pending(connection, path)
    finally:
        connection.close(True)


def _has_content(path: str) -> bool:
    """Return whether there is a database; an empty file, left by a failed copy, is none."""
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _check_new(path: str, mark: Mark, migrate: bool) -> None:
    if mark > Mark(1):  # losing an empty ledger of the first epoch does no harm
        found = f"{path} is empty" if os.path.exists(path) else f"there is no database {path}"
        raise Unusable(
            f"{found}, but {path}.lock remembers a ledger at revision "
            f"{mark.epoch}.{mark.revision}: move it back, or run `moorage db restore FILE`; to "
            f"begin an empty ledger, remove {path}.lock, then run `moorage db migrate` and "
            "`moorage db epoch raise`, so that no fencing token is issued twice"
        )
    if not migrate:
        raise Unusable(f"there is no database {path}; run `moorage db migrate`")
