"""A restore of a PostgreSQL database under running processes: requests fail until its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from moorage.core.errors import Code, Error
from moorage.service.app import Service
from moorage.service.ledger import vocabulary_cases
from moorage.store.api import Unavailable
from tests.service.pools import ask, opened, pool_put, spec
from tests.service.running import TESTER, consumer_id
from tests.support import cluster

POOL = "p"

TAKEN_AWAY = "ALTER SCHEMA public RENAME TO aside; CREATE SCHEMA public"
"""The state after the DROPs of `pg_restore --clean`: there are no tables."""

EMPTY = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'aside' LOOP
        EXECUTE format('CREATE TABLE public.%I (LIKE aside.%I)', name, name);
    END LOOP;
END $$;
CREATE VIEW clock_now AS
SELECT epoch, revision, compacted, lineage, minimum_version, newest_version, importing
FROM clock ORDER BY id DESC LIMIT 1
"""
"""The state before it copies the rows: tables without rows and keys."""

BACK = "DROP SCHEMA public CASCADE; ALTER SCHEMA aside RENAME TO public"

Asked = Callable[[Service], Awaitable[Any]]

NEEDS_THE_CLOCK: dict[str, Asked] = {
    "search": lambda service: service.index.current(),
    "watch": lambda service: service.watch.now(),
    "authenticate": lambda service: service.access.find("moorage_nobody"),
    "change": lambda service: service.transactor.submit(vocabulary_cases.TraitEnsure("CUSTOM_A")),
    "change a pool": lambda service: pool_put(service.admission, POOL, spec()),
    "ask": lambda service: ask(service.admission, "key", POOL),
    "begin an epoch": lambda service: service.operations.epoch_raise(by=TESTER),
}
NEEDS_ROWS: dict[str, Asked] = {
    "look at a consumer": lambda service: service.reads.consumer(consumer_id(1)),
    "look at usages": lambda service: service.reads.usages("project"),
    "list pools": lambda service: service.admission.queries.pools(None, 10),
    "list leases": lambda service: service.admission.queries.leases(None, 10),
    "list tokens": lambda service: service.access.list(),
    "check": lambda service: service.operations.check(),
    "compact": lambda service: service.chores.compact(),
    "forget": lambda service: service.admission.forget(),
}


async def refused(asked: Asked, service: Service) -> bool:
    """Return whether the request is refused; only a temporary error is permitted."""
    try:
        await asked(service)
    except Error as error:
        assert error.code is Code.UNAVAILABLE
        return True
    except Unavailable:  # raised by chores, which have no caller
        return True
    return False


@pytest.mark.parametrize("connected", [True, False])
def test_a_restore_under_a_running_process(connected: bool) -> None:
    """Requests get 503, never 500, at any stage of the restore; afterwards everything works.

    This holds for old connections, which have prepared their statements, and for new ones.
    """

    def sql(text: str) -> None:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(text.encode())
            if not connected:
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    async def run() -> None:
        async with opened(url) as service:
            for asked in (*NEEDS_THE_CLOCK.values(), *NEEDS_ROWS.values()):
                assert not await refused(asked, service)
            await asyncio.to_thread(sql, TAKEN_AWAY)
            for name, asked in {**NEEDS_THE_CLOCK, **NEEDS_ROWS}.items():
                assert await refused(asked, service), name
            await asyncio.to_thread(sql, EMPTY)
            for name, asked in NEEDS_THE_CLOCK.items():
                assert await refused(asked, service), name
            for asked in NEEDS_ROWS.values():
                await refused(asked, service)
            await asyncio.to_thread(sql, BACK)
            for name, asked in {**NEEDS_THE_CLOCK, **NEEDS_ROWS}.items():
                assert not await refused(asked, service), name

    url = cluster.fresh()
    asyncio.run(run())
    cluster.shared().drop(cluster.database_of(url))
