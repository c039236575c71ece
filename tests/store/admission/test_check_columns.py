"""Damage in any column of admission is found, also in one that is added later without a check."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from moorage.core.admission.facts import Keys
from moorage.store.admission import check
from moorage.store.api import Engine
from moorage.store.migrations import migrations
from moorage.store.open import open_engine
from moorage.store.sql import blocks, columns
from tests.store.admission.consistent_rows import ALIVE, consistent_changes
from tests.store.admission.grants import run
from tests.store.test_check import plant
from tests.support import cluster

ALONE = {("admission_clock", "id")}
"""What is stored once and follows from no other stored value."""

SNAPSHOTS = {
    "pools_snapshot": "pool_upsert",
    "slots_snapshot": "slot_upsert",
    "leases_snapshot": "lease_upsert",
    "lease_needs_snapshot": "lease_need_upsert",
    "outcomes_snapshot": "outcome_insert",
}


KEYS = {
    "admission_clock": "'clock'",
    "lease": "id",
    "lease_due": "lease",
    "lease_need": "pool || ' ' || lease",
    "outcome": "lease",
    "pool": "name",
    "slot": "pool || ' ' || name",
}
"""The tables of admission, and the key of each table's rows."""


def table_columns() -> Iterator[tuple[str, str, str, bool]]:
    """Yield (table, column, type, whether it may be NULL) for all columns to test."""
    with apsw.Connection(":memory:") as file:
        for one in migrations("sqlite"):
            file.execute(one.text)
        query = 'SELECT t.name, c.name, c.type, NOT c."notnull" AND c.pk = 0'
        query += " FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c"
        query += " WHERE t.type = 'table' ORDER BY 1, c.cid"
        for table, column, kind, nullable in list(file.execute(query)):
            if table in KEYS and (table, column) not in ALONE:
                yield table, column, kind, bool(nullable)


COLUMNS = list(table_columns())


def values_of(engine: Engine, url: str, table: str, column: str) -> dict[str, Any]:
    """Return the values of a column, by row."""
    query = f"SELECT {KEYS[table]}, {column} FROM {table}"
    rows: list[Any]
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as server:
            rows = server.execute(query.encode()).fetchall()
    else:
        with apsw.Connection(engine.name.removeprefix("sqlite ")) as file:
            rows = file.execute(query).fetchall()
    return dict(rows)


def damages(column: str, value: Any, kind: str, nullable: bool) -> list[str]:
    """Return a wrong value for a column."""
    if isinstance(value, bool):
        other = f"NOT {column}"
    elif kind == "INTEGER":
        other = f"COALESCE(-7 - {column}, 7)"
    else:
        other = f"COALESCE({column} || 'x', 'x')"
    return [other, "NULL"] if nullable and value is not None else [other]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize(("table", "column", "kind", "nullable"), COLUMNS)
def test_damage_in_any_column_is_found(
    tmp_path: Path, database: str, table: str, column: str, kind: str, nullable: bool
) -> None:
    """Another value in any column of any row, or NULL where it is allowed, is found."""
    url = cluster.fresh() if database == "postgresql" else f"sqlite:///{tmp_path}/a.db"

    async def scenario() -> list[str]:
        engine = open_engine(url)
        await run(engine, Keys(), lambda _: consistent_changes(), ALIVE)
        assert await engine.read_aside(check.differences_load()) == []
        values = values_of(engine, url, table, column)
        missed = []
        plant(engine, url, f"CREATE TABLE kept AS SELECT * FROM {table}")
        for key, value in values.items():
            for damage in damages(column, value, kind, nullable):
                where = f"WHERE {KEYS[table]} = '{key}'"
                plant(engine, url, f"UPDATE {table} SET {column} = {damage} {where}")
                if not await engine.read_aside(check.differences_load()):
                    missed.append(f"{damage} {where}")
                plant(engine, url, f"DELETE FROM {table}")
                plant(engine, url, f"INSERT INTO {table} SELECT * FROM kept")
        assert values
        assert await engine.read_aside(check.differences_load()) == []
        await engine.close()
        return missed

    assert asyncio.run(scenario()) == []


def test_both_engines_have_the_same_columns() -> None:
    """The columns judged above, those of one engine, are those of the other, too."""
    url = cluster.fresh()
    asyncio.run(open_engine(url).close())
    query = b"SELECT table_name, column_name FROM information_schema.columns"
    query += b" WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
    with psycopg.connect(url) as server:
        found = [row for row in server.execute(query) if row[0] in KEYS and row not in ALONE]
    assert found == [(table, column) for table, column, _, _ in COLUMNS]


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_rows_are_read_as_they_are_written(name: str, snapshot: str) -> None:
    """The check reads all written columns, in the same order, on every engine."""
    written = blocks(name)[SNAPSHOTS[snapshot]]
    names = columns(SNAPSHOTS[snapshot])
    assert [part.strip() for part in re.split("[(),]", written)[1 : len(names) + 1]] == [*names]
    read = blocks(name)[snapshot].removeprefix("SELECT ").partition("FROM")[0]
    found = [part.strip().rpartition(".")[2] for part in read.split(",")]
    assert found[: len(names)] == [*names]
    assert len(found) - len(names) == (3 if snapshot == "leases_snapshot" else 0)
