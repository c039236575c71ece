"""A PostgreSQL database of an older release is migrated while that release runs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import psycopg
import pytest

from moorage.store.api import Unavailable
from moorage.store.migrations import migrations
from moorage.store.open import Schema, schema_of
from moorage.store.postgres import migrate as postgres_migrate
from moorage.store.postgres.migrate import migrate
from tests.store.planted_migrations import plant
from tests.support import cluster

BEFORE = len(migrations("postgres"))
"""The last migration of the previous release."""

WAITING = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

BATCH = (
    "UPDATE clock SET revision = revision + 1",
    "INSERT INTO batch (id, revision, kept) SELECT gen_random_uuid(), revision, true FROM clock",
)
"""The last statements of an older release's batch."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of an empty ledger of the previous release."""
    made = cluster.fresh()
    plant(monkeypatch, "postgres", "ALTER TABLE clock ADD COLUMN later BIGINT")
    yield made
    cluster.shared().drop(cluster.database_of(made))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the pauses of migrations short."""
    monkeypatch.setattr(postgres_migrate, "PAUSE_SECONDS", 0.01)


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement; return its rows."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def waiting(url: str) -> None:
    """Return when a session waits for a lock."""
    with psycopg.connect(url, autocommit=True) as looking:
        while not looking.execute(WAITING.encode()).fetchall():
            pass


def test_a_batch_that_is_under_way(url: str) -> None:
    """The batch ends, then the migration does: there is no deadlock."""
    with ThreadPoolExecutor(1) as thread, psycopg.connect(url) as batch:
        batch.execute("SELECT arrivals FROM admission_clock FOR UPDATE")
        migrating = thread.submit(migrate, url)
        waiting(url)
        for statement in BATCH:
            batch.execute(statement.encode())
        batch.commit()
        assert migrating.result() == 1
    assert ask(url, "SELECT revision FROM clock_now") == [(1,)]


@pytest.mark.parametrize("tables", [*permutations(postgres_migrate._ORDER, 2)])
def test_tables_in_any_order(url: str, tables: tuple[str, str]) -> None:
    """A reader of two tables may have to start again; the migration ends."""
    first, second = tables
    with ThreadPoolExecutor(1) as thread, psycopg.connect(url) as reader:
        reader.execute(f"SELECT 1 FROM {first}".encode())
        migrating = thread.submit(migrate, url)
        waiting(url)
        try:
            reader.execute(f"SELECT 1 FROM {second}".encode())
        except psycopg.errors.DeadlockDetected:
            reader.rollback()
        else:
            reader.commit()
        assert migrating.result() == 1


def test_others_go_on_beside_a_long_transaction(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report blocks the migration, and the migration blocks others only for a short time."""
    monkeypatch.setattr(postgres_migrate, "WAIT_SECONDS", 1)
    with ThreadPoolExecutor(1) as thread, psycopg.connect(url) as report:
        report.execute("SELECT revision FROM clock")
        migrating = thread.submit(migrate, url)
        waiting(url)
        for statement in BATCH:
            ask(url, f"SET lock_timeout = '15s'; {statement}")
        assert not migrating.done()
        report.commit()
        assert migrating.result() == 1
    assert ask(url, "SELECT revision FROM clock_now") == [(1,)]


def test_a_transaction_that_does_not_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finally the message names what blocks it, and nothing was changed."""
    monkeypatch.setattr(postgres_migrate, "WAIT_SECONDS", 1)
    monkeypatch.setattr(postgres_migrate, "TRIES_MAX", 2)
    with psycopg.connect(url) as report:
        report.execute("SELECT revision FROM clock")
        with pytest.raises(Unavailable, match="other transactions hold its tables"):
            migrate(url)
    assert ask(url, "SELECT COUNT(*) FROM migration") == [(BEFORE,)]


def test_the_schema_of_a_database(url: str) -> None:
    """It says which migration is the newest, before and after."""
    last = migrations("postgres")[-1]
    assert schema_of(url) == Schema(f"{last.number:04}_{last.name}", f"{BEFORE + 1:04}_planted")
    assert not schema_of(url).is_current
