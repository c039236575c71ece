"""Locks are taken in one order, and long statements may take as long as necessary."""

import asyncio
from collections.abc import Iterator
from itertools import product
from typing import Any

import psycopg
import pytest

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import vocabulary
from moorage.core.ledger.facts import Keys
from moorage.store.api import Conflict, Row
from moorage.store.ledger import load as ledger_load
from moorage.store.open import open_engine
from moorage.store.postgres import connection
from moorage.store.postgres.connection import Link, conninfo_of
from tests.store.build import (
    CLASSES,
    TRAITS,
    Batch,
    claimed,
    consumer_id,
    custom_name_new,
    provider_id,
    provider_new,
    run,
    together,
)
from tests.support import cluster
from tests.support.virtual_loop import VirtualLoop
from tests.support.virtual_loop import run as in_virtual_loop

LEDGER, STRUCTURE, CONSUMERS, PROVIDERS = range(4)

TAKES = {
    "ledger_lock": [LEDGER],
    "ledger_share": [LEDGER],
    "structure_lock": [STRUCTURE],
    "consumers_lock": [LEDGER, CONSUMERS],
    "providers_lock": [LEDGER, PROVIDERS],
    "providers_lock_by_tree": [LEDGER, PROVIDERS],
}
"""The locks that each statement takes, in order."""

ROW: Row = (consumer_id(1), 1, "p", "u", None, 0, 0, f'{{"{provider_id(9)}": {{"VCPU": 1}}}}')

MEMBERS: dict[str, Any] = {
    "consumers": {ConsumerId(consumer_id(1))},
    "providers": {ProviderId(provider_id(1))},
    "names": {"name"},
    "parents": {ProviderId(provider_id(2))},
    "trees": {ProviderId(provider_id(3))},
    "tags": {ProviderId(provider_id(4))},
    "classes": {"CUSTOM_A"},
    "class_uses": {"CUSTOM_A"},
    "traits": {"CUSTOM_T"},
    "trait_uses": {"CUSTOM_T"},
}


def taken(keys: Keys) -> list[int]:
    """Return the locks that a load takes, in the order in which they are first taken."""
    plan = ledger_load.facts_load(keys, CLASSES, TRAITS)
    found: list[int] = []
    try:
        statements = next(plan)
        while True:
            for one in statements:
                found += [lock for lock in TAKES.get(one.block, []) if lock not in found]
            words = {"resource_classes_load": "CUSTOM_A", "traits_load": "CUSTOM_T"}
            rows: list[list[Row]] = [
                [ROW]
                if one.block == "consumers_lock"
                else [(words[one.block], 0, 0)]
                if one.block in words
                else []
                for one in statements
            ]
            statements = plan.send(rows)
    except StopIteration:
        return found


def test_locks_have_one_order() -> None:
    """For any batch, the order is: the ledger, names, consumers, providers."""
    several = 0
    for chosen in product((False, True), repeat=len(MEMBERS)):
        members = dict(zip(MEMBERS, chosen, strict=True))
        keys = Keys(
            **{name: set(MEMBERS[name]) if there else set() for name, there in members.items()}
        )
        order = taken(keys)
        assert order == sorted(order), members
        several += len(order) > 2
    assert several > 100, "too few combinations take several locks"


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of an empty ledger."""
    made = cluster.fresh()
    yield made
    cluster.shared().drop(cluster.database_of(made))


async def waiting(url: str, count: int, *tasks: "asyncio.Task[Any]") -> None:
    """Return when this many sessions wait for an advisory lock."""
    asked = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as looking:
        while await (await looking.execute(asked)).fetchone() != (count,):
            assert not any(task.done() for task in tasks)


def class_gone(name: str) -> Batch:
    """Delete a custom class."""
    keys = Keys(classes={name}, class_uses={name})
    return Batch(keys, [lambda facts, _: vocabulary.class_delete(facts, name)])


def test_a_deleted_class_and_a_new_provider(url: str) -> None:
    """One deletes a class and creates a provider, the other creates one: neither blocks the other.

    The locks of the database are held until both wait for them, the deleting one first.
    """

    async def scenario() -> None:
        one, other = open_engine(url), open_engine(url)
        await run(one, custom_name_new("CUSTOM_A"))
        async with await psycopg.AsyncConnection.connect(url) as holding:
            await holding.execute("SELECT pg_advisory_xact_lock(778, 1)")
            deleting = asyncio.create_task(
                run(one, together(class_gone("CUSTOM_A"), provider_new(1)))
            )
            await waiting(url, 1, deleting)
            making = asyncio.create_task(run(other, provider_new(2)))
            await waiting(url, 2, deleting, making)
        assert sorted([await deleting, await making]) == [2, 3]
        await one.close()
        await other.close()

    asyncio.run(scenario())


def class_renamed(old: str, new: str) -> Batch:
    """Rename a custom class."""
    keys = Keys(classes={old, new}, class_uses={old})
    return Batch(keys, [lambda facts, now: vocabulary.class_rename(facts, now, old, new)[0]])


def test_renaming_a_class_may_take_long(url: str) -> None:
    """It may take longer than the limit for a round, at which any other batch gives up."""

    async def scene(loop: VirtualLoop) -> None:
        one, other = open_engine(url), open_engine(url)
        await run(one, together(custom_name_new("CUSTOM_A"), provider_new(1, CUSTOM_A=8)))
        await run(one, claimed(1, {1: {"CUSTOM_A": 1}}))
        async with await psycopg.AsyncConnection.connect(url) as holding:
            await holding.execute("SELECT 1 FROM consumer FOR UPDATE")
            renaming = asyncio.create_task(run(one, class_renamed("CUSTOM_A", "CUSTOM_B")))
            while not await blocked(url, " AND query LIKE 'UPDATE consumer%'"):
                assert not renaming.done()
            claiming = asyncio.create_task(run(other, claimed(2, {1: {"CUSTOM_A": 1}})))
            while await blocked(url) < 2:
                assert not claiming.done()
            loop.advance(connection.ROUND_SECONDS_MAX)
            with pytest.raises(Conflict, match="does not answer"):
                await claiming
            assert not renaming.done()
        assert await renaming == 3
        await one.close()
        await other.close()

    async def blocked(url: str, more: str = "") -> int:
        """Return how many statements wait for a lock."""
        asked = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'{more}"
        async with await psycopg.AsyncConnection.connect(url) as looking:
            return len(await (await looking.execute(asked.encode())).fetchall())

    in_virtual_loop(scene)


def test_a_too_large_value_does_not_break_the_connection(url: str) -> None:
    """The connection stays open, so that such a request does not affect others."""

    async def scenario() -> None:
        link = await Link.open(conninfo_of(url))
        large = "INSERT INTO trait SELECT string_agg(md5(n::text), ''), 0, 0"
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            await link.run("write", [(f"{large} FROM generate_series(1, 300) AS n", ())])
        assert not link.closed
        await link.close()

    asyncio.run(scenario())
