"""A round of statements may be larger than the socket's buffers, in either direction."""

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from moorage.store.postgres.connection import Link, Prepared, conninfo_of
from tests.support import cluster

SIZE = 16 * 1024 * 1024
"""In bytes; more than sockets buffer."""

SECONDS_MAX = 20.0
"""The time after which a round that hangs ends with an error."""


def ran(statements: Sequence[Prepared]) -> list[object]:
    """Run a round, then a short one on the same connection; return the first one's values."""
    url = cluster.fresh()

    async def scenario() -> list[object]:
        link = await Link.open(conninfo_of(url))
        try:
            found = await link.run("large", statements, SECONDS_MAX)
            assert await link.run("small", [("SELECT 1", ())]) == [([(1,)], 1)]
            return [rows[0][0] for rows, _ in found]
        finally:
            await link.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize("place", range(3))
def test_a_large_parameter_arrives(place: int) -> None:
    """At any place in the round, also as the last statement."""
    texts = ["x" * SIZE if n == place else "y" for n in range(3)]
    assert ran([("SELECT length($1::text)", (text,)) for text in texts]) == list(map(len, texts))


def test_large_answers_to_large_parameters_arrive() -> None:
    """This holds although the server may stop reading until its answers are read."""
    text = "x" * SIZE
    assert ran([("SELECT $1::text", (text,)) for _ in range(3)]) == [text] * 3


def test_a_failed_statement_before_a_large_one_is_reported() -> None:
    """The server skips the rest of the round, and the connection can be used again."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        ran([("SELECT 1 / $1::int", ("0",)), ("SELECT length($1::text)", ("x" * SIZE,))])
