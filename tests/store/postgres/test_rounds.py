"""What a round sends to the server: columns as binary arrays, each statement prepared once."""

import asyncio
from typing import Any

import psycopg
import pytest

from moorage.store.api import Conflict, Write
from moorage.store.postgres.connection import Link, conninfo_of, prepared
from tests.support import cluster
from tests.support.cluster import ask

TEXTS = ["", "plain", '{"a": "b\\\\c"}', "NULL", "{,}", "Zoë ✓ 🦉", "line\nbreak\ttab", None]
BIGINTS = [0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63), 7, None]
BOOLEANS = [True, False, None, True, True, False, True, False]


def test_values_are_stored_as_they_are() -> None:
    """Quotes, NULLs, limits and empty texts of every type of column arrive unchanged."""
    url = cluster.fresh()
    rows = [
        (
            *("p", n, f"lease {n}", 0, n, 1, forced, forced, "o", "waiting", text, 0, number),
            *(None, text, number, text),
        )
        for n, (text, number, forced) in enumerate(zip(TEXTS, BIGINTS, BOOLEANS, strict=True))
        if forced is not None
    ]

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        ((_, touched),) = await link.run("write", [prepared(Write("lease_need_upsert", rows))])
        assert touched == len(rows)
        await link.close()

    asyncio.run(scenario())
    stored = ask(url, "SELECT * FROM lease_need ORDER BY arrival")
    assert [row[:17] for row in stored] == rows


def test_a_statement_is_prepared_once() -> None:
    """Also after a round that has failed, and after a rollback."""
    url = cluster.fresh()
    failing = [("BEGIN", ()), ("SELECT 1 / $1::bigint", ("0",)), ("SELECT 2", ())]

    async def counted(link: Link) -> Any:
        ask_it = ("SELECT count(*)::bigint FROM pg_prepared_statements WHERE name <> $1", ("",))
        ((((number,),), _),) = await link.run("count", [ask_it])
        return number

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        one = [("SELECT $1::text", ("x",)), ("SELECT $1::text", (None,))]
        for _ in range(3):
            assert await link.run("twice", one) == [([("x",)], 1), ([(None,)], 1)]
        before = await counted(link)
        with pytest.raises(psycopg.errors.DivisionByZero):
            await link.run("fail", failing)
        states = [link.in_transaction]
        await link.run("roll back", [("ROLLBACK", ())])
        states.append(link.in_transaction)
        assert states == [True, False]
        assert await link.run("twice", one) == [([("x",)], 1), ([(None,)], 1)]
        # Of the round that failed, what came before the error is prepared in vain.
        assert await counted(link) <= before + 3
        await link.close()

    asyncio.run(scenario())


def test_a_failed_round_leaves_a_usable_link() -> None:
    """The statements after the failed one are not executed; the next round is."""
    url = cluster.fresh()
    insert = "INSERT INTO trait (name, created_at, updated_at) VALUES ($1, 0, 0)"

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        twice = [("BEGIN", ()), (insert, ("a",)), (insert, ("a",)), (insert, ("b",))]
        with pytest.raises(Conflict, match="duplicate key"):
            await link.run("write", twice)
        await link.run("write", [("ROLLBACK", ()), (insert, ("c",))])
        await link.close()

    asyncio.run(scenario())
    assert ask(url, "SELECT name FROM trait") == [("c",)]


def test_a_text_with_nul_is_refused() -> None:
    """It is not cut there: the server would look for another text."""
    url = cluster.fresh()

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        with pytest.raises(psycopg.DataError, match="NUL"):
            await link.run("ask", [("SELECT $1::text", ("abc\0def",))])
        assert await link.run("ask", [("SELECT $1::text", ("abc",))]) == [([("abc",)], 1)]
        await link.close()

    asyncio.run(scenario())


def test_an_error_at_the_end_of_a_round() -> None:
    """A deferred constraint fails with the Sync, and is reported as what it is."""
    url = cluster.fresh()
    ask(url, "CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    twice = "INSERT INTO late SELECT 1 FROM generate_series(1, $1::int)"

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        with pytest.raises(Conflict, match="duplicate key"):
            await link.run("write", [(twice, ("2",))])
        assert await link.run("write", [(twice, ("1",))]) == [([], 1)]
        await link.close()

    asyncio.run(scenario())
