"""A time that Python cannot have is one odd row, not the end of the reading."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import DatabaseSource, silent
from moorage.integrations.placement.rows import decoded
from tests.moving.support import engines
from tests.moving.support.pair import synced

UUID = "00000000-0000-4000-8000-000000000001"
ROW = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, created_at)"
    f" VALUES (1, '{UUID}', 'a', 0, 1, :time)"
)
POSTGRESQL = ("infinity", "-infinity", "0044-03-15 12:00:00 BC", "20000-01-01")


@pytest.mark.parametrize(
    ("engine", "zoned", "time"),
    [
        ("mariadb", False, "0000-00-00 00:00:00"),
        *(("postgresql", zoned, time) for zoned in (False, True) for time in POSTGRESQL),
    ],
)
def test_an_odd_time_is_missing(engine: str, zoned: bool, time: str, tmp_path: Path) -> None:
    """And the row is named; `zoned`: in a column that was changed by hand."""
    database = synced(engines.fresh(engine, tmp_path))
    writing = sa.create_engine(address_of(database), poolclass=sa.pool.NullPool)
    with writing.begin() as connection:
        if engine == "mariadb":
            connection.execute(sa.text("SET sql_mode = ''"))
        if zoned:
            change = "ALTER TABLE resource_providers ALTER created_at TYPE timestamptz"
            connection.execute(sa.text(change))
        connection.execute(sa.text(ROW), {"time": time})
    reading = DatabaseSource(Database(address_of(database))).read(Oddities(), silent)
    assert reading.oddities.found["time_missing"].named == [f"provider {UUID!r}, id 1"]
    assert decoded("providers", reading.rows.providers[UUID]).created_at.year == 1970


def test_a_time_of_a_zone_is_read(tmp_path: Path) -> None:
    """The control."""
    database = synced(engines.fresh("postgresql", tmp_path))
    writing = sa.create_engine(address_of(database), poolclass=sa.pool.NullPool)
    with writing.begin() as connection:
        change = "ALTER TABLE resource_providers ALTER created_at TYPE timestamptz"
        connection.execute(sa.text(change))
        connection.execute(sa.text(ROW), {"time": "2024-01-01 01:00:00.25+01"})
    reading = DatabaseSource(Database(address_of(database))).read(Oddities(), silent)
    row = decoded("providers", reading.rows.providers[UUID])
    assert row.created_at.isoformat() == "2024-01-01T00:00:00.250000+00:00"
