"""The mark of an original's state: another one after any change."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.integrations.placement.addresses import address_of
from moorage.integrations.placement.database import Database
from tests.moving.support import engines
from tests.moving.support.pair import synced

ROWS = (
    "INSERT INTO projects (id, external_id) VALUES (1, 'a,b'), (2, 'c')",
    "INSERT INTO users (id, external_id) VALUES (1, 'ü'), (2, '')",
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, created_at)"
    " VALUES (1, 'u1', NULL, 0, 1, '2026-01-01 00:00:00')",
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, created_at)"
    " VALUES (2, 'u2', 'NULL', 0, 1, '2026-01-01 00:00:00')",
    "INSERT INTO consumers (id, uuid, project_id, user_id, generation) VALUES (1, 'c1', 1, 1, 1)",
)
CHANGES = (
    (
        "UPDATE resource_providers SET name = '' WHERE id = 1",
        "UPDATE resource_providers SET name = NULL WHERE id = 1",
    ),
    (
        "UPDATE resource_providers SET updated_at = '2026-01-01 00:00:01' WHERE id = 2",
        "UPDATE resource_providers SET updated_at = NULL WHERE id = 2",
    ),
    (
        "UPDATE consumers SET generation = 2",
        "UPDATE consumers SET generation = 1",
    ),
    (
        "UPDATE consumers SET project_id = 2, user_id = 2",
        "UPDATE consumers SET project_id = 1, user_id = 1",
    ),
    (
        "UPDATE projects SET external_id = 'a, b' WHERE id = 1",
        "UPDATE projects SET external_id = 'a,b' WHERE id = 1",
    ),
    (
        "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id)"
        " VALUES (1, 7)",
        "DELETE FROM resource_provider_aggregates",
    ),
)
"""Changes, each with the one that takes it back."""


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_a_mark_tells_states_apart(engine: str, tmp_path: Path) -> None:
    """The same state has the same mark again."""
    url = address_of(synced(engines.fresh(engine, tmp_path)))
    writing = sa.create_engine(url, poolclass=sa.pool.NullPool)
    database = Database(url)

    def mark() -> str:
        with database.snapshot() as snapshot:
            found = snapshot.mark()
        assert found is not None
        return found

    def run(statement: str) -> None:
        with writing.begin() as connection:
            connection.execute(sa.text(statement))

    marks = [mark()]
    for row in ROWS:
        run(row)
        marks.append(mark())
    for change, back in CHANGES:
        run(change)
        marks.append(mark())
        run(back)
        assert mark() == marks[len(ROWS)]
    assert len(set(marks)) == len(marks)
