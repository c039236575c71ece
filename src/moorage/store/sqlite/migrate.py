"""Migrates a SQLite database to the schema of this release, all or nothing."""

import apsw

from moorage.store.api import Unusable
from moorage.store.migrations import Migration, migrations, missing
from moorage.store.sqlite.file import translated


def migrate(connection: apsw.Connection, path: str) -> int:
    """Apply the missing migrations in one transaction; return their number.

    Raises:
        Unusable: the database was written by a newer release, was altered, or is not Moorage's.
    """
    with translated(f"migrate {path}"):
        connection.execute("BEGIN IMMEDIATE")
        try:
            lacking = pending(connection, path)
            for migration in lacking:
                connection.execute(migration.text)
                connection.execute(
                    "INSERT INTO migration (number, name, checksum) VALUES (?, ?, ?)",
                    (migration.number, migration.name, migration.checksum),
                )
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return len(lacking)


def pending(connection: apsw.Connection, path: str) -> list[Migration]:
    """Return the migrations that the database lacks.

    Raises:
        Unusable: the database was written by a newer release, was altered, or is not Moorage's.
    """
    return missing(migrations("sqlite"), _applied(connection, path), path)


def _applied(connection: apsw.Connection, path: str) -> dict[int, tuple[str, str]]:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
    if not tables:
        return {}
    if "migration" not in tables:
        raise Unusable(f"{path} is the database of another program; name another file")
    rows = connection.execute("SELECT number, name, checksum FROM migration").fetchall()
    return {int(str(number)): (str(name), str(text)) for number, name, text in rows}
