"""The schema: migrations and schema.sql agree, and other databases are refused."""

import asyncio
import re
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from moorage.store.api import Unusable
from moorage.store.migrations import migrations
from moorage.store.open import open_engine
from moorage.store.sqlite.migrate import migrate, pending


def dump(connection: apsw.Connection) -> list[tuple[str, ...]]:
    """Return the schema, and its initial rows.

    Without white space: a column that was added later is on the line of the last one.
    """
    found = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    ).fetchall()
    start = connection.execute("SELECT * FROM clock").fetchall()
    return [tuple(_packed(str(part)) for part in row) for row in [*found, *start]]


def _packed(sql: str) -> str:
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.split()))


def test_schema_is_the_sum_of_the_migrations(tmp_path: Path) -> None:
    """`schema.sql`, written for readers, equals the sum of the migrations."""
    made = apsw.Connection(str(tmp_path / "made.db"))
    assert migrate(made, "made.db") == len(migrations("sqlite"))
    written = apsw.Connection(str(tmp_path / "written.db"))
    text = files("moorage.store").joinpath("schema/sqlite/schema.sql").read_text()
    written.execute(text)
    assert dump(made) == dump(written)
    made.close()
    written.close()


def test_migrations_are_numbered_without_gaps() -> None:
    """Migrations count from 1 and have names."""
    numbers = [migration.number for migration in migrations("sqlite")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(
        migration.name and len(migration.checksum) == 64 for migration in migrations("sqlite")
    )


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    """A database that is up to date is unchanged."""
    connection = apsw.Connection(str(tmp_path / "a.db"))
    migrate(connection, "a.db")
    before = dump(connection)
    assert migrate(connection, "a.db") == 0
    assert pending(connection, "a.db") == []
    assert dump(connection) == before
    connection.close()


def test_an_older_database_is_migrated(tmp_path: Path) -> None:
    """Applied migrations are not repeated; the later ones are applied."""
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    first = migrations("sqlite")[0]
    connection.execute(first.text)
    row = (first.number, first.name, first.checksum)
    connection.execute("INSERT INTO migration VALUES (?, ?, ?)", row)
    connection.execute("UPDATE clock SET revision = 7")
    connection.close()
    with pytest.raises(Unusable, match="older"):
        open_engine(f"sqlite:///{path}", migrate=False)
    asyncio.run(open_engine(f"sqlite:///{path}").close())
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT revision FROM clock").fetchall() == [(7,)]
    assert pending(connection, "a.db") == []
    connection.close()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("INSERT INTO migration VALUES (999, 'future', 'x')", "999 .future., which this release"),
        ("UPDATE migration SET checksum = 'x' WHERE number = 2", "another text of migration 2"),
        ("DROP TABLE migration", "something else"),
    ],
)
def test_foreign_databases_are_refused(tmp_path: Path, change: str, complaint: str) -> None:
    """A newer, an altered and a foreign database are refused in one line, and not changed."""
    path = tmp_path / "a.db"
    asyncio.run(open_engine(f"sqlite:///{path}").close())
    connection = apsw.Connection(str(path))
    connection.execute(change)
    before = connection.execute("SELECT * FROM sqlite_master").fetchall()
    connection.close()
    for wants in (True, False):
        with pytest.raises(Unusable, match=complaint) as caught:
            open_engine(f"sqlite:///{path}", migrate=wants)
        assert "\n" not in str(caught.value)
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT * FROM sqlite_master").fetchall() == before
    connection.close()


def test_a_failed_migration_leaves_nothing(tmp_path: Path) -> None:
    """All missing migrations or none: a table name in use stops them, and nothing is kept."""
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    first = migrations("sqlite")[0]
    connection.execute(first.text)
    row = (first.number, first.name, first.checksum)
    connection.execute("INSERT INTO migration VALUES (?, ?, ?)", row)
    connection.execute("CREATE TABLE access_token (x)")
    with pytest.raises(apsw.SQLError):
        migrate(connection, "a.db")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "provider" not in tables
    assert not connection.in_transaction
    connection.close()
