"""The schema of each release is read as a whole, or refused by its name."""

import os
import sqlite3
from pathlib import Path

import pytest

from moorage.integrations.placement.addresses import address_in, address_of, shown
from moorage.integrations.placement.database import Database, _grants_writes
from moorage.integrations.placement.rows import decoded
from moorage.integrations.placement.schemas import BEFORE_TYPES, HEADS
from moorage.integrations.placement.source_error import SourceError
from tests.integrations.placement.original_file import CONSUMER, SCHEMAS, made, read

RELEASES = sorted(file.stem for file in SCHEMAS.iterdir())


def test_there_are_schemas_of_all_kinds() -> None:
    """With and without consumer types, and the newest."""
    assert RELEASES == ["placement-16", "placement-5", "placement-9"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_is_read_whole(tmp_path: Path, release: str) -> None:
    """Without the table of consumer types, consumers have none; everything else is there."""
    reading = read(made(tmp_path, schema=release))
    assert reading.schema in HEADS
    assert reading.rows.counts() == {"classes": 1, "traits": 1, "providers": 2, "consumers": 1}
    consumer = decoded("consumers", reading.rows.consumers[CONSUMER])
    typeless = reading.schema in BEFORE_TYPES
    assert consumer.type == (None if typeless else "INSTANCE")
    assert set(reading.oddities.found) == ({"consumer_typeless"} if typeless else set())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE alembic_version SET version_num = 'feedfacecafe'", "'feedfacecafe'"),
        ("DELETE FROM alembic_version", "has nothing"),
        ("INSERT INTO alembic_version VALUES ('b4ed3a175331')", "is unknown"),
        ("DROP TABLE alembic_version", "is not a database of OpenStack Placement"),
        ("DROP TABLE consumer_types", "table consumer_types has no id, name"),
        ("ALTER TABLE inventories DROP COLUMN reserved", "table inventories has no reserved"),
        (
            "DROP TABLE alembic_version; CREATE TABLE migrate_version (version INTEGER)",
            "before Stein",
        ),
    ],
)
def test_another_schema_is_refused_by_name(tmp_path: Path, change: str, said: str) -> None:
    """Before anything of it is read."""
    with pytest.raises(SourceError, match=said):
        read(made(tmp_path, change))


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """SQLite would make an empty one."""
    with pytest.raises(SourceError, match="unable to open"):
        read(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_nothing_is_written_to_the_file(tmp_path: Path) -> None:
    """The control: the connection itself refuses to."""
    file = made(tmp_path)
    before = file.read_bytes()
    read(file)
    assert file.read_bytes() == before
    with (
        Database(address_of(f"sqlite:///{file}")).snapshot() as snapshot,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        snapshot._connection.connection.cursor().execute("DELETE FROM traits")


def test_a_snapshot_does_not_see_later_writes(tmp_path: Path) -> None:
    """All tables are of one moment."""
    file = made(tmp_path, "PRAGMA journal_mode = WAL")
    with Database(address_of(f"sqlite:///{file}")).snapshot() as snapshot:
        writer = sqlite3.connect(file)
        with writer:
            writer.execute("DELETE FROM allocations")
        writer.close()
        assert snapshot.count("allocations") == 1
    assert read(file).rows.consumers == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mysql://u:secret@h/placement?charset=utf8", "mysql+pymysql"),
        ("mysql+mysqldb://u:secret@h:3306/placement", "mysql+pymysql"),
        ("postgresql+psycopg2://u:secret@h/placement", "postgresql+psycopg"),
        ("postgresql://u:secret@h/placement", "postgresql+psycopg"),
        ("sqlite:////var/placement.sqlite", "sqlite+pysqlite"),
    ],
)
def test_addresses_of_placement_conf_are_taken(text: str, kind: str) -> None:
    """Whatever driver they name; the password is never shown."""
    url = address_of(text)
    assert url.drivername == kind
    assert "secret" not in shown(url)
    assert "charset" not in shown(url)


@pytest.mark.parametrize("text", ["", "no address", "oracle://u:secret@h/x", "mysql://u:secret@h"])
def test_other_addresses_are_refused_without_showing_them(text: str) -> None:
    """They may have a password."""
    with pytest.raises(SourceError) as refused:
        address_of(text)
    assert "secret" not in str(refused.value)


def test_an_at_sign_in_a_password_must_be_quoted() -> None:
    """Otherwise a part of the password would count as the host, which is shown."""
    with pytest.raises(SourceError, match="%40") as refused:
        address_of("mysql://u:top@secret@h/placement")
    assert "secret" not in str(refused.value)
    assert address_of("mysql://u:top%40secret@h/placement").password == "top@secret"


def test_a_file_with_a_password_must_be_private(tmp_path: Path) -> None:
    """Others could read it."""
    file = tmp_path / "placement.url"
    file.write_text("mysql://u:secret@h/placement\n")
    file.chmod(0o640)
    with pytest.raises(SourceError, match="chmod 600"):
        address_in(str(file))
    os.chmod(file, 0o600)
    assert address_in(str(file)).password == "secret"


@pytest.mark.parametrize(
    ("grant", "writes"),
    [
        ("GRANT SELECT ON `placement`.* TO `reader`@`%`", False),
        ("GRANT USAGE ON *.* TO `reader`@`%` IDENTIFIED BY PASSWORD '*0'", False),
        ("GRANT SELECT, SHOW VIEW ON *.* TO `reader`@`%`", False),
        ("GRANT ALL PRIVILEGES ON `placement`.* TO `placement`@`%`", True),
        ("GRANT SELECT, INSERT, UPDATE, DELETE ON `placement`.* TO `placement`@`%`", True),
    ],
)
def test_an_account_that_may_write_is_recognised(grant: str, writes: bool) -> None:
    """By what SHOW GRANTS prints."""
    assert _grants_writes(grant) is writes
