"""A process that falls silent in a transaction blocks the others for a limited time.

A stopped process or a lost machine still has its connection: only the server can end it, by
`idle_in_transaction_session_timeout`.
"""

import asyncio

import psycopg
import pytest

from moorage.store.postgres.connection import (
    Link,
    Lost,
    _Connection,
    conninfo_of,
    translated,
)
from tests.support import cluster
from tests.support.private_names import overridden

LINKS = 16
"""More than one, because the end of a round on the wire depends on timing."""

SECONDS_MAX = 10


def test_a_silent_transaction_is_ended() -> None:
    """The server ends a transaction that stops after any round, which releases its locks."""
    url = cluster.fresh()

    async def silent() -> None:
        links = [await Link.open(conninfo_of(url)) for _ in range(LINKS)]
        for n, link in enumerate(links):
            await link.run(
                "begin",
                [
                    ("BEGIN", ()),
                    ("SET LOCAL idle_in_transaction_session_timeout = '300ms'", ()),
                    ("SELECT pg_advisory_xact_lock($1)", (str(n),)),
                ],
            )
            await link.run("go on", [("SELECT 1", ()), ("SELECT 2", ())])
        await asyncio.to_thread(waited, url)
        for link in links:
            await link.close()

    asyncio.run(silent())


def test_the_private_methods_of_psycopg_that_are_overridden() -> None:
    """Psycopg may rename them in any release; nor may it use a private name of ours."""
    assert overridden(_Connection, psycopg.AsyncConnection) == set()


def waited(url: str) -> None:
    """Take all locks. Raises psycopg.errors.LockNotAvailable if another session has one."""
    with psycopg.connect(url) as other:
        other.execute(f"SET lock_timeout = '{SECONDS_MAX}s'".encode())
        for n in range(LINKS):
            other.execute("SELECT pg_advisory_xact_lock(%s)", (n,))


def test_a_broken_line_without_a_name_is_a_lost_one() -> None:
    """The driver may report a break as an error of the database without its state."""
    with pytest.raises(Lost), translated("commit"):
        raise psycopg.DatabaseError("server closed the connection unexpectedly")
    with pytest.raises(psycopg.ProgrammingError), translated("commit"):
        raise psycopg.ProgrammingError("a mistake of ours")
