"""The end of an engine: no connection stays open."""

import asyncio

import psycopg

from moorage.store import changelog
from moorage.store.postgres.engine import PostgresEngine
from tests.support import cluster
from tests.support.cluster import ask

OWN_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"


def test_a_read_in_progress_when_the_engine_is_closed() -> None:
    """It is answered, and leaves no connection open."""

    async def scenario(url: str) -> None:
        engine = PostgresEngine(url)
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE clock")
            reading = asyncio.create_task(engine.read(changelog.changes_load(0)))
            while not await asyncio.to_thread(ask, url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                assert not reading.done()
            await engine.close()
        assert (await reading).revision == 0
        assert engine._idle == []
        async with asyncio.timeout(20):
            while await asyncio.to_thread(ask, url, OWN_SESSIONS) != [(1,)]:
                pass

    url = cluster.fresh()
    asyncio.run(scenario(url))
    cluster.shared().drop(cluster.database_of(url))
