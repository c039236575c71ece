"""Migrates a PostgreSQL database to the schema of this release, all or nothing; others wait.

It runs at startup, so it may block. Processes of the previous release may keep running, so each
lock is awaited only briefly: statements that queue behind a waiting lock wait as well.
"""

import time
from typing import Any, cast

import psycopg
from psycopg import Connection, errors

from moorage.store.api import StoreError, Unavailable, Unusable
from moorage.store.migrations import Migration, migrations, missing
from moorage.store.postgres.connection import conninfo_of, name_of

VERSION_MIN = 150_000
"""PostgreSQL 15, in the form of `server_version_num`."""

TRIES_MAX = 20
"""How often to try while other sessions hold the tables: for about a minute and a half."""

WAIT_SECONDS = 3
"""How long to wait for a table. Meanwhile all later requests for it wait, too, even reads."""

PAUSE_SECONDS = 1.0
"""How long other sessions may continue before the next try."""

_LOCK = "SELECT pg_advisory_xact_lock(778, 0)"

_ORDER = ("access_token", "admission_clock", "service_clock", "clock", "batch")
"""Tables that both migrations and batches lock, in the order of a batch, to prevent deadlocks."""


def migrate(url: str) -> int:
    """Apply the missing migrations in one transaction; return their number.

    Raises:
        Unusable: the address is wrong, the server is too old, or the database was written by a
            newer release, was altered, or is not Moorage's.
        Unavailable: the server does not answer, or others hold the tables for too long.
    """
    name = name_of(url)
    for tried in range(TRIES_MAX):
        if tried:
            time.sleep(PAUSE_SECONDS)  # noqa: TID251 - lets the other sessions continue
        try:
            return _migrated(url, name)
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            continue
        except psycopg.Error as error:
            raise startup_error(name, error) from error
    raise Unavailable(
        f"cannot bring the schema of {name} up to date: other transactions hold its tables; end "
        "the longest ones (a report, a dump, a forgotten session), then start again"
    )


def _migrated(url: str, name: str) -> int:
    with psycopg.connect(conninfo_of(url)) as connection:
        _check_version(connection, name)
        connection.execute(_LOCK)
        lacking = pending(connection, name)
        there = _tables(connection)
        taken = [table for table in _ORDER if table in there]
        if lacking and taken:
            connection.execute(cast(Any, f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'"))
            connection.execute(cast(Any, f"LOCK TABLE {', '.join(taken)}"))
        for migration in lacking:
            connection.execute(cast(Any, migration.text))
            connection.execute(
                "INSERT INTO migration (number, name, checksum) VALUES (%s, %s, %s)",
                (migration.number, migration.name, migration.checksum),
            )
    return len(lacking)


def check_current(url: str) -> None:
    """Check that no migration is missing. Raises Unusable, Unavailable."""
    if pending_of(url):
        raise Unusable(f"the schema of {name_of(url)} is older; run `moorage db migrate`")


def pending_of(url: str) -> list[Migration]:
    """Return the migrations that the database at this address lacks. Raises Unusable, Unavailable.

    It changes nothing.
    """
    name = name_of(url)
    try:
        with psycopg.connect(conninfo_of(url)) as connection:
            _check_version(connection, name)
            return pending(connection, name)
    except psycopg.Error as error:
        raise startup_error(name, error) from error


def pending(connection: Connection[Any], name: str) -> list[Migration]:
    """Return the migrations that the database lacks. Raises Unusable."""
    tables = _tables(connection)
    if not tables:
        return migrations("postgres")
    if "migration" not in tables:
        raise Unusable(f"{name} is the database of another program; name another one")
    rows = connection.execute("SELECT number, name, checksum FROM migration").fetchall()
    applied = {number: (what, checksum) for number, what, checksum in rows}
    return missing(migrations("postgres"), applied, name)


def _tables(connection: Connection[Any]) -> set[str]:
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    ).fetchall()
    return {table for (table,) in rows}


def _check_version(connection: Connection[Any], name: str) -> None:
    if connection.info.server_version < VERSION_MIN:
        raise Unusable(
            f"{name} is PostgreSQL {connection.info.server_version // 10_000}; use 15 or later"
        )


def startup_error(name: str, error: psycopg.Error) -> StoreError:
    """Translate an error of the driver at startup into one of the port."""
    said = str(error).strip().split("\n", 1)[0]
    wrong = (errors.InvalidCatalogName, errors.InsufficientPrivilege, errors.InvalidPassword)
    if isinstance(error, wrong) or not isinstance(error, psycopg.OperationalError):
        return Unusable(f"cannot use {name}: {said}")
    return Unavailable(f"cannot reach {name}: {said}")
