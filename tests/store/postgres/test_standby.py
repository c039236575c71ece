"""A synchronous standby goes away: commits that it has not confirmed are never shown.

With `MOORAGE_SOAK` it is away for a minute, with the service's own timeouts.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg import AsyncConnection

from moorage.store import changelog
from moorage.store.api import StoreError, Unavailable
from moorage.store.postgres import commit, connection
from moorage.store.postgres.engine import PostgresEngine
from moorage.store.postgres.migrate import migrate
from tests.store.build import provider_new, run
from tests.support.cluster import Cluster
from tests.support.seeds import SOAK

WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'COMMIT%'
"""
AWAY_SECONDS = 60.0
CONFIRMING = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Shorten the timeouts of clients to one or two seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connection, "ROUND_SECONDS_MAX", 1.0)
        patched.setattr(commit, "ASK_SECONDS_MAX", 2.0)
        yield


class Pair:
    """A primary and its synchronous standby."""

    patience: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """What clients have while the standby is away."""

    def __init__(self, folder: Path) -> None:
        self.primary = Cluster(folder / "a", durable=True)
        self.url = self.primary.create("moorage")
        migrate(self.url)
        self.standby = Cluster(folder / "b", durable=True, primary=self.primary)
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as server:
            server.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            server.execute("SELECT pg_reload_conf()")
            while server.execute(CONFIRMING).fetchone() is None:
                pass

    def close(self) -> None:
        """Stop both."""
        self.standby.close()
        self.primary.close()

    def waiting(self) -> list[int]:
        """Return the sessions that wait for the standby in a COMMIT."""
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as server:
            return [pid for (pid,) in server.execute(WAITING.encode()).fetchall()]

    def cancel(self, pid: int) -> None:
        """Cancel a session's wait, as an operator might."""
        with psycopg.connect(self.primary.url("postgres"), autocommit=True) as server:
            server.execute("SELECT pg_cancel_backend(%s)", (pid,))


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return a pair; its clients are impatient while the standby is away."""
    with running() as made:
        made.patience = impatient
        yield made


@contextlib.contextmanager
def running() -> Iterator[Pair]:
    """Start a pair, and stop it afterwards."""
    with TemporaryDirectory(prefix="moorage-pg-") as folder:
        Path(folder).chmod(0o755)
        made = Pair(Path(folder))
        try:
            yield made
        finally:
            made.close()


async def seen(engine: PostgresEngine) -> int:
    """Return the newest revision that an engine sees."""
    return (await engine.look(changelog.changes_load(0))).revision


async def published(
    pair: Pair,
    engines: list[PostgresEngine],
    meanwhile: Callable[[Pair], Awaitable[None]],
    seconds: float = 0.0,
) -> tuple[int, bool]:
    """Commit while the standby is away; return the highest visible revision, and if acknowledged.

    The standby is away until the commit has an answer, and for at least `seconds`.
    """
    writer, other = engines
    assert await run(writer, provider_new(1)) == 1
    assert await seen(other) == 1
    await asyncio.to_thread(pair.standby.stop, "immediate")
    with pair.patience():
        committing = asyncio.ensure_future(run(writer, provider_new(2)))
        most = 1
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        acting = asyncio.ensure_future(meanwhile(pair))
        while not committing.done() or loop.time() < end:
            most = max(most, await seen(other))
        await acting
        with contextlib.suppress(StoreError):
            await committing
    return max(most, await seen(other)), committing.exception() is None


async def nothing(_: Pair) -> None:
    """Do nothing."""


async def cancelled(pair: Pair) -> None:
    """Cancel the wait of a COMMIT, as an operator might."""
    while not (pids := await asyncio.to_thread(pair.waiting)):
        pass
    await asyncio.to_thread(pair.cancel, pids[0])


async def away_back_and_promoted(pair: Pair, seconds: float) -> None:
    """Stop the standby during a commit, restart it, kill the primary and promote the standby."""
    engines = [PostgresEngine(pair.url) for _ in range(2)]
    assert await published(pair, engines, nothing, seconds) == (1, False)
    assert await asyncio.to_thread(pair.waiting), "the wait of the COMMIT was cancelled"
    await asyncio.to_thread(pair.standby.start)
    async with asyncio.timeout(60):
        while (most := await seen(engines[1])) < 2:
            pass
    assert await run(engines[0], provider_new(3)) == most + 1
    for engine in engines:
        await engine.close()
    await asyncio.to_thread(pair.primary.stop, "immediate")
    await asyncio.to_thread(pair.standby.promote)
    with psycopg.connect(pair.standby.url("moorage")) as server:
        assert server.execute("SELECT revision FROM clock").fetchone() == (most + 1,)


def test_a_standby_that_goes_away_and_takes_over(pair: Pair) -> None:
    """No reader sees the commit before the standby has it; what was seen survives a failover."""
    asyncio.run(away_back_and_promoted(pair, 0.0))


@pytest.mark.skipif(not SOAK, reason="takes more than a minute")
def test_a_standby_that_is_away_for_a_minute() -> None:
    """The same with the service's timeouts: none of them cancels the wait of a COMMIT."""
    with running() as pair:
        asyncio.run(away_back_and_promoted(pair, AWAY_SECONDS))


def test_whoever_cancels_shows_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a driver that cancels a long wait shows what a failover takes back."""
    monkeypatch.setattr(connection._Connection, "wait", AsyncConnection.wait)

    async def scenario() -> None:
        engines = [PostgresEngine(pair.url) for _ in range(2)]
        most, acknowledged = await published(pair, engines, nothing)
        assert most == 2 and not acknowledged
        for engine in engines:
            await engine.close()

    asyncio.run(scenario())


def test_a_commit_with_a_warning_is_not_done(pair: Pair) -> None:
    """If another session cancels the wait, the server reports it, and nothing is acknowledged."""

    async def scenario() -> None:
        engines = [PostgresEngine(pair.url) for _ in range(2)]
        _, acknowledged = await published(pair, engines, cancelled)
        assert not acknowledged
        await asyncio.to_thread(pair.standby.start)
        while True:  # until the standby follows
            with contextlib.suppress(Unavailable):
                await run(engines[0], provider_new(3))
                break
        for engine in engines:
            await engine.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("unchecked", [False, True])
def test_reads_after_a_crash_of_the_server(
    pair: Pair, unchecked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A COMMIT that waited is on the restarted server but on no standby: it is never shown.

    The control is a process that trusts a restarted server.
    """

    async def accept(engine: PostgresEngine, server: str) -> None:
        engine.known.server = server

    if unchecked:
        monkeypatch.setattr(PostgresEngine, "_check_server", accept)

    async def scenario() -> None:
        writer, other = [PostgresEngine(pair.url) for _ in range(2)]
        assert await run(writer, provider_new(1)) == 1
        assert await seen(other) == 1
        await asyncio.to_thread(pair.standby.stop, "immediate")
        with pair.patience():
            committing = asyncio.ensure_future(run(writer, provider_new(2)))
            while not await asyncio.to_thread(pair.waiting):
                pass
            await asyncio.to_thread(pair.primary.restart, "immediate")
            shown = 1
            with contextlib.suppress(StoreError):
                shown = await seen(other)
            assert (shown == 2) is unchecked
            with contextlib.suppress(StoreError):
                await committing
        await asyncio.to_thread(pair.standby.start)
        async with asyncio.timeout(60):
            while shown < 2:
                with contextlib.suppress(StoreError):
                    shown = await seen(other)
        for engine in (writer, other):
            await engine.close()

    asyncio.run(scenario())
