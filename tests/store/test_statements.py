"""Loads and saves are set-based: the number of statements does not grow with the batch."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

import pytest

from moorage.store.api import Engine, Plan, Row, Statement, Write
from moorage.store.sql import blocks, translated, written
from tests.store.build import claimed, provider_new, run, together

T = TypeVar("T")


class Counting:
    """An engine that records the statements of its transactions, a set-based one as one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.statements: list[str] = []

    @asynccontextmanager
    async def transaction(self) -> Any:
        """Begin a transaction of the engine that records its statements."""
        async with self._engine.transaction() as transaction:
            yield _Counted(transaction, self.statements)


class _Counted:
    def __init__(self, transaction: Any, statements: list[str]) -> None:
        self._transaction = transaction
        self._statements = statements
        self.commit: Callable[[], Awaitable[None]] = transaction.commit

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        def counted() -> Plan[T]:
            try:
                asked: Sequence[Statement] = next(plan)
                while True:
                    self._statements.extend(statement.block for statement in asked)
                    assert all(one.rows for one in asked if isinstance(one, Write))
                    rows: list[list[Row]] = yield asked
                    asked = plan.send(rows)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # a generator's return value is untyped

        return await self._transaction.run(counted(), aside=aside)  # type: ignore[no-any-return]  # as above


def test_statements_per_batch(engine: Engine) -> None:
    """A batch of 64 claims takes at most 12 statements, the same as a batch of one."""

    async def scenario() -> None:
        await run(engine, together(*(provider_new(n, VCPU=64, DISK_GB=64) for n in range(8))))
        counting: Any = Counting(engine)
        amounts = {"VCPU": 1, "DISK_GB": 1}
        await run(counting, together(*(claimed(n, {n % 8: amounts}) for n in range(64))))
        claims = list(counting.statements)
        assert len(claims) <= 12
        assert claims.count("holder_insert") == 1
        counting.statements.clear()
        await run(counting, claimed(64, {0: amounts}))
        assert counting.statements == claims

    asyncio.run(scenario())


def test_blocks_are_single_and_unique(engine: Engine) -> None:
    """Every statement of the engine's files is found by name, without comments."""
    found = blocks({"sqlite": "sqlite", "postgresql": "postgres"}[engine.name.split()[0]])
    assert found["beginning_load"] == "SELECT at FROM beginning;"
    assert not any("--" in text for text in found.values())


def test_common_blocks_are_equal_on_all_engines() -> None:
    """A common block differs between engines only in parameters and types."""
    sqlite, postgres = blocks("sqlite"), blocks("postgres")
    assert sqlite.keys() == postgres.keys()
    common = dict(written("common"))
    assert all(postgres[name] == text for name, text in common.items())
    assert all(sqlite[name] == translated(text) for name, text in common.items())
    assert translated("SELECT SUM(a)::bigint FROM b WHERE $12::text IS NULL OR c = $12;") == (
        "SELECT SUM(a) FROM b WHERE ?12 IS NULL OR c = ?12;"
    )


def test_engines_have_no_copies_of_each_other() -> None:
    """A block that is equal on both engines after translation belongs in the common file."""
    sqlite = {name: numbered(text) for name, text in written("sqlite")}
    postgres = {name: numbered(translated(text)) for name, text in written("postgres")}
    assert sqlite and sqlite.keys() == postgres.keys()
    assert [name for name in sqlite if sqlite[name] == postgres[name]] == []
    assert numbered("SELECT a\n  FROM b WHERE c = ? AND d = ?;") == (
        "SELECT a FROM b WHERE c = ?1 AND d = ?2;"
    )


def numbered(text: str) -> str:
    """Return a statement of SQLite on one line, with numbered parameters."""
    numbers = count(1)
    return " ".join(re.sub(r"\?(?![0-9])", lambda _: f"?{next(numbers)}", text).split())


def test_an_unknown_engine_has_no_blocks() -> None:
    """The statements of an unknown engine raise FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        blocks("abacus")
