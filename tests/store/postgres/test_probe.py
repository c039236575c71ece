"""Servers without the guarantees that correctness needs are refused, at the start and later."""

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import psycopg
import pytest

from moorage.store import changelog
from moorage.store.api import Conflict, Unavailable, Unusable
from moorage.store.open import open_engine
from moorage.store.postgres import probe
from moorage.store.postgres.engine import PostgresEngine
from tests.store.build import claimed, provider_new, run
from tests.store.postgres.pooler import TransactionPooler
from tests.support import cluster

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

FAKES = "&options=-csearch_path%3Dfake,public,pg_catalog"
"""Functions in the schema `fake` replace the server's own."""


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of an empty ledger."""
    made = cluster.fresh()
    yield made
    cluster.shared().drop(cluster.database_of(made))


def url_through(url: str, folder: Path) -> str:
    """Return the address of the same database at the listener in a folder."""
    return f"postgresql://moorage@/{cluster.database_of(url)}?host={folder}"


def test_a_server_as_it_should_be(url: str) -> None:
    """PostgreSQL itself passes, and nothing is left behind, also with concurrent starts."""
    for _ in range(3):
        probe.check(url)
    with psycopg.connect(url) as server:
        found = server.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    assert found == []


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        (
            "FUNCTION fake.pg_try_advisory_xact_lock(int, int) RETURNS boolean"
            " LANGUAGE sql AS 'SELECT true'",
            "its advisory locks exclude nobody",
        ),
        (
            "FUNCTION fake.pg_advisory_xact_lock(int, int) RETURNS void LANGUAGE sql AS 'SELECT 1'",
            "its advisory locks exclude nobody",
        ),
        (
            "FUNCTION fake.pg_try_advisory_xact_lock(int, int) RETURNS boolean"
            " LANGUAGE sql AS 'SELECT false'",
            "its advisory locks outlive their transactions",
        ),
        (
            "FUNCTION fake.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "a standby answers",
        ),
        (
            "FUNCTION fake.pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "poolers in transaction mode",
        ),
        ("VIEW fake.migration AS SELECT 1 AS number", "its row locks exclude nobody"),
    ],
)
def test_a_server_that_lacks_something(url: str, fake: str, words: str) -> None:
    """A database that only resembles PostgreSQL is refused in one line that names what it lacks."""
    with psycopg.connect(url) as server:
        server.execute("CREATE SCHEMA fake")
        probe.check(url + FAKES)
        server.execute(f"CREATE {fake}".encode())
    with pytest.raises(Unusable, match=words) as caught:
        probe.check(url + FAKES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("order", ["last", "turns"])
@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_pooler_in_transaction_mode(
    url: str, order: Literal["last", "turns"], least: int
) -> None:
    """It is refused at the start, in any order in which it assigns sessions."""

    async def scenario(folder: Path) -> None:
        async with TransactionPooler(folder, cluster.shared().folder, order, least) as pooler:
            with pytest.raises(Unusable, match="connect directly, or through a pooler in session"):
                await asyncio.to_thread(open_engine, url_through(url, folder))
            assert pooler.handed_out > 2, "the pooler was not used"

    with TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


def test_a_pooler_that_is_added_later(url: str) -> None:
    """Nothing is committed on a session that lacks the settings."""

    async def scenario(folder: Path) -> None:
        async with TransactionPooler(folder, cluster.shared().folder):
            engine = PostgresEngine(url_through(url, folder))
            await run(engine, provider_new(0, VCPU=8))
            # Another client has the session that was used last.
            async with await psycopg.AsyncConnection.connect(url_through(url, folder)) as other:
                await other.execute("SELECT 1")
                with pytest.raises((Conflict, Unavailable), match="poolers in transaction mode"):
                    await run(engine, claimed(0, {0: {"VCPU": 1}}))
            await engine.close()

    with TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))
    with psycopg.connect(url) as server:
        assert server.execute("SELECT used FROM inventory").fetchall() == [(0,)]


def test_a_session_that_is_not_ours(url: str) -> None:
    """If statements work on any session, the state of the session reveals it."""

    async def scenario() -> None:
        engine = PostgresEngine(url)
        await run(engine, provider_new(0, VCPU=8))
        assert engine._writer is not None
        await engine._writer.run("forget", [("SET moorage.session = 'of another'", ())])
        with pytest.raises(Unavailable, match="poolers in transaction mode"):
            await run(engine, claimed(0, {0: {"VCPU": 1}}))
        await run(engine, claimed(0, {0: {"VCPU": 1}}))
        assert (await engine.read(changelog.changes_load(0))).revision == 2
        await engine.close()

    asyncio.run(scenario())


@contextmanager
def pgbouncer(folder: Path, mode: str) -> Iterator[None]:
    """Run PgBouncer in a folder, in front of the server of the tests."""
    assert PGBOUNCER is not None
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\n* = host={cluster.shared().folder} user=moorage\n[pgbouncer]\n"
        f"pool_mode = {mode}\nauth_type = any\nunix_socket_dir = {folder}\nlisten_port = 5432\n"
    )
    user = None
    if os.geteuid() == 0:  # it refuses to run as root
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = next(name for name in cluster.USERS if name in names)
        shutil.chown(folder, user)
    command = [PGBOUNCER, str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, user=user) as process:
        try:
            assert process.stderr is not None
            lines = []
            while not any("process up" in line for line in lines):
                lines.append(process.stderr.readline())
                assert lines[-1], lines
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_pgbouncer(url: str, mode: str) -> None:
    """In session mode everything works; in any other mode the start is refused."""

    async def scenario(address: str) -> None:
        engine = open_engine(address)
        await run(engine, provider_new(0, VCPU=8))
        await engine.close()

    with TemporaryDirectory() as folder, pgbouncer(Path(folder), mode):
        if mode == "session":
            asyncio.run(scenario(url_through(url, Path(folder))))
        else:
            with pytest.raises((Unusable, Unavailable)):
                open_engine(url_through(url, Path(folder)))
