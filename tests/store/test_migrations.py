"""Migrations are applied once, in order, all or none; other databases are refused."""

import asyncio
from pathlib import Path

import apsw
import pytest

from moorage.store.api import Unusable
from moorage.store.migrations import migrations
from moorage.store.open import Schema, open_engine, schema_of
from moorage.store.sqlite.migrate import migrate, pending
from tests.store.planted_migrations import plant


def dump(connection: apsw.Connection) -> list[tuple[object, ...]]:
    """Return the schema, and the row of the clock."""
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    return [*connection.execute(schema), *connection.execute("SELECT * FROM clock")]


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


def test_an_older_database_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Applied migrations are not repeated; the later ones are applied."""
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    migrate(connection, "a.db")
    connection.execute("UPDATE clock SET revision = 7")
    connection.close()
    number = plant(monkeypatch, "sqlite", "ALTER TABLE trait ADD COLUMN later TEXT")
    with pytest.raises(Unusable, match="older"):
        open_engine(f"sqlite:///{path}", migrate=False)
    asyncio.run(open_engine(f"sqlite:///{path}").close())
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT revision FROM clock").fetchall() == [(7,)]
    assert connection.execute("SELECT MAX(number) FROM migration").fetchall() == [(number,)]
    assert connection.execute("SELECT later FROM trait").fetchall() == []
    assert pending(connection, "a.db") == []
    connection.close()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("INSERT INTO migration VALUES (999, 'future', 'x')", "999 .future., which this release"),
        ("UPDATE migration SET checksum = 'x' WHERE number = 1", "another text of migration 1"),
        ("UPDATE migration SET name = 'clock' WHERE number = 1", "before the first release"),
        ("DROP TABLE migration", "another program"),
    ],
)
def test_foreign_databases_are_refused(tmp_path: Path, change: str, complaint: str) -> None:
    """A newer, an altered, an unreleased and a foreign one are refused in one line and stay."""
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


def test_the_file_of_another_program_is_not_written_to(tmp_path: Path) -> None:
    """Not even its kind of journal changes, which another program may not expect."""
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE alembic_version (version_num)")
    connection.close()
    before = path.read_bytes()
    for wants in (True, False):
        with pytest.raises(Unusable, match="another program"):
            open_engine(f"sqlite:///{path}", migrate=wants)
    assert path.read_bytes() == before


def test_the_schema_of_a_database(tmp_path: Path) -> None:
    """It is read while another process has the database, and reading makes no file."""
    url = f"sqlite:///{tmp_path}/a.db"
    newest = schema_of(url).newest
    assert schema_of(url) == Schema(None, newest)
    assert not schema_of(url).is_current
    assert [*tmp_path.iterdir()] == []
    engine = open_engine(url)
    assert schema_of(url) == Schema(newest, newest)
    assert schema_of(url).is_current
    asyncio.run(engine.close())


def test_a_failed_migration_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a migration or none: a table name in use stops it, and nothing is kept."""
    connection = apsw.Connection(str(tmp_path / "a.db"))
    migrate(connection, "a.db")
    before = dump(connection)
    plant(monkeypatch, "sqlite", "CREATE TABLE later (x); CREATE TABLE access_token (x)")
    with pytest.raises(apsw.SQLError):
        migrate(connection, "a.db")
    assert dump(connection) == before
    assert not connection.in_transaction
    connection.close()
