"""Databases of older releases on MariaDB: read whole, as on SQLite, or refused by name.

The migrations of release 16 up to an older head make what that release has made: those in the
packages of 5.0.1, 9.0.0 and 14.0.0 have the same statements. The packages themselves need another
SQLAlchemy. `tests/integrations/placement/schemas/` has what they have made on SQLite.
"""

from pathlib import Path

import pytest

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, Reading, silent
from moorage.integrations.placement.schemas import BEFORE_TYPES
from moorage.integrations.placement.source_error import SourceError
from tests.integrations.placement.original_file import BASIS, TYPES, made
from tests.integrations.placement.original_file import read as read_file
from tests.moving.support import engines
from tests.moving.support.pair import synced

NEWEST = "a082b8bb98d0"
HEADS = {"placement-5": "b5c396305c25", "placement-9": "422ece571366", "placement-16": NEWEST}
"""By the schema on SQLite with the same rows. That of release 14 is the one of 16."""

REFUSED = (
    (
        "UPDATE alembic_version SET version_num = 'feedfacecafe'",
        "'feedfacecafe'",
        f"UPDATE alembic_version SET version_num = '{NEWEST}'",
    ),
    (
        "DELETE FROM alembic_version",
        "has nothing",
        f"INSERT INTO alembic_version VALUES ('{NEWEST}')",
    ),
    (
        "INSERT INTO alembic_version VALUES ('b4ed3a175331')",
        "is unknown",
        "DELETE FROM alembic_version WHERE version_num = 'b4ed3a175331'",
    ),
    (
        "RENAME TABLE alembic_version TO another",
        "is not a database of OpenStack Placement",
        "RENAME TABLE another TO alembic_version",
    ),
    (
        "RENAME TABLE consumer_types TO another",
        "table consumer_types has no id, name",
        "RENAME TABLE another TO consumer_types",
    ),
    (
        "ALTER TABLE inventories RENAME COLUMN reserved TO another",
        "table inventories has no reserved",
        "ALTER TABLE inventories RENAME COLUMN another TO reserved",
    ),
)
"""What changes a schema, why it is refused then, and what changes it back."""


def _filled(folder: Path, schema: str) -> str:
    """Return the address of a database of a release, with the rows that a file has."""
    address = synced(engines.fresh("mariadb", folder), HEADS[schema])
    rows = BASIS + ("" if HEADS[schema] in BEFORE_TYPES else TYPES)
    statements = [one for one in rows.split(";\n") if one.strip()]
    _run(address, "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", *statements)
    return address


def _run(address: str, *statements: str) -> None:
    engines.mariadb().run(*statements, database=address_of(address).database)


def _read(address: str) -> Reading:
    source = DatabaseSource(Database(address_of(address)))
    reading = source.read(Oddities(), silent)
    assert source.is_unchanged(reading)
    return reading


@pytest.mark.parametrize("schema", HEADS)
def test_a_release_is_read_whole(schema: str, tmp_path: Path) -> None:
    """As on SQLite, and the same once the original has migrated it."""
    address = _filled(tmp_path, schema)
    reading = _read(address)
    assert reading.schema == HEADS[schema]
    assert reading.rows == read_file(made(tmp_path, schema=schema)).rows
    if HEADS[schema] != NEWEST:
        synced(address)
        migrated = _read(address)
        assert migrated.schema == NEWEST
        assert migrated.rows == reading.rows


def test_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    """Before anything of it is read."""
    address = _filled(tmp_path, "placement-16")
    whole = _read(address).rows
    for change, said, back in REFUSED:
        _run(address, change)
        with pytest.raises(SourceError, match=said):
            _read(address)
        _run(address, back)
    assert _read(address).rows == whole
