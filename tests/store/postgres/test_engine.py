"""What only PostgreSQL has: connections that break during COMMIT, failovers, migrations."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.store import changelog
from moorage.store.api import Conflict, Query, StoreError, Unavailable, Unusable
from moorage.store.batch import batch_save
from moorage.store.ledger import load as ledger_load
from moorage.store.ledger import save as ledger_save
from moorage.store.ledger.save import LedgerPart
from moorage.store.migrations import migrations
from moorage.store.open import open_engine
from moorage.store.postgres.commit import Receipt
from moorage.store.postgres.engine import PostgresEngine
from moorage.store.postgres.migrate import migrate
from tests.store.build import (
    CLASSES,
    NOW,
    TRAITS,
    Batch,
    claimed,
    differences_load,
    index_load,
    provider_new,
    run,
)
from tests.store.postgres.cutting_relay import Relay
from tests.support import cluster
from tests.support.cluster import ask

CATALOG = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef, NULL, NULL, NULL FROM pg_indexes
    WHERE schemaname = 'public'
UNION ALL SELECT relname, reloptions::text, NULL, NULL, NULL, NULL FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of an empty database, without tables."""
    name = f"empty_{uuid4().hex}"
    yield cluster.shared().create(name)
    cluster.shared().drop(name)


def test_migrating_twice_changes_nothing(url: str) -> None:
    """A database that is up to date is unchanged."""
    assert migrate(url) == len(migrations("postgres"))
    made = ask(url, CATALOG), ask(url, "SELECT * FROM clock")
    assert migrate(url) == 0
    assert (ask(url, CATALOG), ask(url, "SELECT * FROM clock")) == made


def test_concurrent_starts_migrate_once(url: str) -> None:
    """One process migrates; the others wait and find nothing to do."""
    with ThreadPoolExecutor(6) as threads:
        counts = sorted(threads.map(migrate, [url] * 6))
    assert counts == [0, 0, 0, 0, 0, len(migrations("postgres"))]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE migration", "is the database of another program"),
        ("UPDATE migration SET checksum = 'x' WHERE number = 1", "another text of migration 1"),
        ("UPDATE migration SET name = 'clock' WHERE number = 1", "before the first release"),
        ("INSERT INTO migration VALUES (99, 'later', 'x')", "which this release does not know"),
    ],
)
def test_foreign_databases_are_refused(url: str, statement: str, words: str) -> None:
    """A foreign, a newer, an altered and an unreleased database are refused."""
    migrate(url)
    ask(url, statement)
    with pytest.raises(Unusable, match=words):
        open_engine(url)


def test_an_older_schema_without_leave_to_migrate(url: str) -> None:
    """A user that may not migrate learns what to run."""
    with pytest.raises(Unusable, match="run `moorage db migrate`"):
        open_engine(url, migrate=False)
    assert ask(url, CATALOG) == []


def test_another_history_begins_an_epoch(url: str) -> None:
    """After a failover, or in a copy, the epoch is higher; reconnecting changes nothing."""

    async def epochs() -> list[int]:
        found = []
        for lineage in (None, None, "00000007-1-1", None):
            if lineage is not None:
                ask(url, f"UPDATE clock SET lineage = '{lineage}'")
            engine = open_engine(url)
            async with engine.transaction() as transaction:
                await transaction.run(changelog.wipe())
            found.append((await engine.read(changelog.changes_load(0))).epoch)
            await engine.close()
        return found

    found = asyncio.run(epochs())
    assert found[:2] == [1, 1]
    assert found[2] == found[3] > 1


def test_the_history_as_the_previous_release_stored_it(url: str) -> None:
    """It lacked the table's id: an upgrade begins no epoch, but another server does."""

    async def epochs() -> list[int]:
        found = []
        for cut in ("''", "'-[0-9]+$'", "'[0-9]-[0-9]+$'"):
            engine = open_engine(url)
            if found:
                ask(url, f"UPDATE clock SET lineage = regexp_replace(lineage, {cut}, '')")
            async with engine.transaction() as transaction:
                await transaction.run(changelog.wipe())
            found.append((await engine.read(changelog.changes_load(0))).epoch)
            await engine.close()
        return found

    found = asyncio.run(epochs())
    assert found[:2] == [1, 1]
    assert found[2] > 1


def test_a_clock_restored_next_to_a_new_one(url: str) -> None:
    """If only the rows were restored, into a migrated database, the later clock is used."""
    migrate(url)
    ask(url, "INSERT INTO clock (id, epoch, revision, compacted) VALUES (5000, 7, 40, 40)")

    async def scenario() -> tuple[int, int]:
        engine = open_engine(url)
        async with engine.transaction() as transaction:
            await transaction.run(changelog.wipe())
            await transaction.commit()
        found = await engine.read(changelog.clock_load())
        await engine.close()
        return found

    assert asyncio.run(scenario()) == (7, 41)


Cut = Callable[[Relay], None]


def lose_request(relay: Relay) -> None:
    """Drop the commit before it reaches the server."""
    relay.drops_requests = True


def lose_answer(relay: Relay) -> None:
    """The server commits, and its answer is lost."""
    relay.drops_answers = True


def through_relay(url: str, scenario: Callable[[Relay, PostgresEngine], Awaitable[None]]) -> None:
    """Run steps with an engine whose connections can be cut."""
    migrate(url)
    name = cluster.database_of(url)

    async def run_in(folder: Path) -> None:
        async with Relay(folder, cluster.shared().folder) as relay:
            engine = PostgresEngine(f"postgresql://moorage@/{name}?host={folder}")
            await scenario(relay, engine)
            await engine.close()

    with TemporaryDirectory() as folder:
        asyncio.run(run_in(Path(folder)))


async def cut_in_commit(relay: Relay, engine: PostgresEngine, batch: Batch, cut: Cut) -> None:
    """Run a batch, and cut the connection during its COMMIT; new connections work again."""
    async with engine.transaction() as transaction:
        facts = await transaction.run(ledger_load.facts_load(batch.keys, CLASSES, TRAITS))
        before, merged = ledger_save.before_of(facts), Changes()
        for decide in batch.decisions:
            merged.update(decide(facts, NOW))
        await transaction.run(batch_save([LedgerPart(before, merged)], [], NOW))
        cut(relay)
        committing = asyncio.ensure_future(transaction.commit())
        await relay.cut.wait()
        relay.heal()
        await committing


def test_a_commit_whose_answer_is_lost(url: str) -> None:
    """If the server committed but its answer was lost, the commit is still acknowledged."""

    async def scenario(relay: Relay, engine: PostgresEngine) -> None:
        await run(engine, provider_new(0, VCPU=8))
        for n in range(5):
            await cut_in_commit(relay, engine, claimed(n, {0: {"VCPU": 1}}), lose_answer)
        assert (await engine.read(changelog.changes_load(0))).revision == 6
        assert await engine.read_aside(differences_load()) == []

    through_relay(url, scenario)
    assert ask(url, "SELECT used FROM inventory") == [(5,)]


def test_lost_before_the_commit_was_heard(url: str) -> None:
    """The server never received the commit: Conflict, nothing is there; the next try succeeds."""

    async def scenario(relay: Relay, engine: PostgresEngine) -> None:
        await run(engine, provider_new(0, VCPU=8))
        for n in range(5):
            with pytest.raises(Conflict, match="lost before the commit"):
                await cut_in_commit(relay, engine, claimed(n, {0: {"VCPU": 1}}), lose_request)
            await run(engine, claimed(n, {0: {"VCPU": 1}}))
        assert (await engine.read(changelog.changes_load(0))).revision == 6

    through_relay(url, scenario)
    assert ask(url, "SELECT used FROM inventory") == [(5,)]


def test_a_commit_that_arrives_late_is_refused(url: str) -> None:
    """A commit judged lost stays lost, even if the server receives it afterwards."""
    migrate(url)

    async def judged_lost(receipt: Receipt) -> None:
        engine = PostgresEngine(url)
        for _ in range(2):
            with pytest.raises(Conflict, match="lost before the commit"):
                await receipt.ask(engine.open_writer)
        await engine.close()

    receipt = Receipt()
    ((statement, parameters),) = receipt.statements()
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as late:
        late.execute("INSERT INTO trait VALUES ('CUSTOM_LATE', 0, 0)")
        asyncio.run(judged_lost(receipt))
        with pytest.raises(psycopg.errors.UniqueViolation):
            late.execute(statement.encode(), parameters)
    assert ask(url, "SELECT name FROM trait") == []


def test_a_receipt_that_is_asked_for_too_late(url: str) -> None:
    """Receipts are deleted after a time; then the outcome of such a transaction is unknown."""
    migrate(url)
    ((now,),) = ask(url, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")

    async def error_of(minutes: int, kept: bool) -> type[Exception] | None:
        engine = PostgresEngine(url)
        receipt = Receipt(Instant(now - minutes * 60_000_000))
        if kept:
            ask(url, f"INSERT INTO batch (id, revision, kept) VALUES ('{receipt.id}', 0, true)")
        try:
            await receipt.ask(engine.open_writer)
        except StoreError as error:
            return type(error)
        finally:
            await engine.close()
        return None

    assert asyncio.run(error_of(1, kept=False)) is Conflict
    assert asyncio.run(error_of(61, kept=False)) is Unavailable
    assert asyncio.run(error_of(61, kept=True)) is None


def test_a_commit_that_is_under_way_is_waited_for(url: str) -> None:
    """A process that asks while the commit is still running learns how it ended."""
    migrate(url)

    async def asked(receipt: Receipt) -> None:
        engine = PostgresEngine(url)
        await receipt.ask(engine.open_writer)
        await engine.close()

    receipt = Receipt()
    ((statement, parameters),) = receipt.statements()
    with (
        psycopg.connect(url, cursor_factory=psycopg.RawCursor) as slow,
        ThreadPoolExecutor(1) as threads,
    ):
        slow.execute(statement.encode(), parameters)
        asking = threads.submit(asyncio.run, asked(receipt))
        while not ask(url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not asking.done()
        slow.commit()
        asking.result()


@pytest.mark.parametrize("cut", [lose_request, lose_answer])
def test_a_connection_lost_before_the_commit(url: str, cut: Cut) -> None:
    """A connection lost while statements run is a Conflict: nothing can have been saved."""

    async def scenario(relay: Relay, engine: PostgresEngine) -> None:
        await run(engine, provider_new(0, VCPU=8))
        cut(relay)
        with pytest.raises(Conflict):
            await run(engine, claimed(1, {0: {"VCPU": 1}}))
        relay.heal()
        await run(engine, claimed(1, {0: {"VCPU": 1}}))

    through_relay(url, scenario)
    assert ask(url, "SELECT used FROM inventory") == [(1,)]


def test_nobody_there(tmp_path: Path) -> None:
    """Without a server every method raises Unavailable."""

    async def scenario() -> None:
        engine = PostgresEngine(f"postgresql:///d?host={tmp_path}")
        with pytest.raises(Unavailable):
            await run(engine, provider_new(0))
        with pytest.raises(Unavailable):
            await engine.read(changelog.changes_load(0))
        with pytest.raises(Unavailable):
            await engine.read_aside(index_load())
        with pytest.raises(Unavailable):
            await engine.woken(1.0)
        await engine.close()

    asyncio.run(scenario())


def test_reads_survive_a_restart_of_the_server(url: str) -> None:
    """Connections that the server has dropped are replaced without an error."""
    migrate(url)

    async def scenario() -> None:
        engine = open_engine(url)
        for _ in range(3):
            await engine.read(changelog.changes_load(0))
            await engine.read_aside(index_load())
            await asyncio.to_thread(cluster.shared().restart, "immediate")
        await engine.close()

    asyncio.run(scenario())


def test_reads_cannot_write(url: str) -> None:
    """A plan that writes is refused on read connections."""
    migrate(url)

    async def scenario() -> None:
        engine = open_engine(url)

        def plan() -> Any:
            yield [Query("clock_raise", (0,))]

        with pytest.raises(Unavailable, match="read-only"):
            await engine.read(plan())
        await engine.close()

    asyncio.run(scenario())


async def committed(engine: Any, statement: Query) -> None:
    """Commit a statement."""

    def plan() -> Any:
        yield [statement]

    async with engine.transaction() as transaction:
        await transaction.run(plan())
        await transaction.commit()


def test_a_commit_without_a_revision_wakes_nobody(url: str) -> None:
    """There are no change rows to read: renewals and signs of life."""
    migrate(url)

    async def scenario() -> None:
        own, other = open_engine(url), open_engine(url)
        await own.woken(0.0)
        heard = asyncio.create_task(own.woken(60.0))
        for _ in range(3):
            await committed(other, Query("arrivals_load"))
        await own.read(changelog.clock_load())
        assert not heard.done()
        await committed(other, Query("epoch_raise", (0,)))
        async with asyncio.timeout(20):
            await heard
        await own.close()
        await other.close()

    asyncio.run(scenario())


def test_own_commits_do_not_wake_the_listener(url: str) -> None:
    """A process waits for those of others: it has handed over its own without reading them."""
    migrate(url)

    async def scenario() -> None:
        own, other = open_engine(url), open_engine(url)
        await own.woken(0.0)
        heard = asyncio.create_task(own.woken(60.0))
        for _ in range(3):
            await committed(own, Query("clock_raise", (0,)))
        await own.read(changelog.clock_load())
        assert not heard.done()
        await committed(other, Query("clock_raise", (0,)))
        async with asyncio.timeout(20):
            await heard
        await own.close()
        await other.close()

    asyncio.run(scenario())


def test_a_listener_that_cannot_subscribe(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose LISTEN was refused is not waited on: the next call subscribes again."""

    async def scenario() -> None:
        engine = open_engine(url)
        with monkeypatch.context() as refusing:
            cancelled = "a; DO $$BEGIN RAISE EXCEPTION USING ERRCODE = 'query_canceled'; END$$"
            refusing.setattr("moorage.store.postgres.engine.CHANNEL", cancelled)
            with pytest.raises(StoreError):
                await engine.woken(0.1)
        await engine.woken(0.1)
        heard = asyncio.create_task(engine.woken(60.0))
        await asyncio.to_thread(ask, url, "SELECT pg_notify('moorage_revision', '')")
        async with asyncio.timeout(20):
            await heard
        await engine.close()

    migrate(url)
    asyncio.run(scenario())
