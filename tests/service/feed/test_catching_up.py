"""A process follows its peers window by window, woken by new changes, across new epochs."""

import asyncio
from contextlib import aclosing
from typing import Any

import psycopg
import pytest

from moorage.service.feed.change_rows import ChangesGone, tails
from moorage.service.ledger import vocabulary_cases
from moorage.store.changelog import FOLLOWED_KINDS, ROWS_MAX
from tests.service.batch.test_shared import HoldingEngine, Pair, play
from tests.service.running import TESTER
from tests.support import cluster


async def traits(pair: Pair, count: int) -> None:
    """Create `count` traits at the first service, each with one change row."""
    commands = [vocabulary_cases.TraitEnsure(f"CUSTOM_{n}") for n in range(count)]
    await asyncio.gather(*map(pair.services[0].transactor.submit, commands))


def epochs(pair: Pair) -> list[tuple[Any, ...]]:
    """Return the epoch of the database."""
    return cluster.ask(pair.url, "SELECT epoch FROM clock_now")


def test_many_changes_are_followed() -> None:
    """An index that is several windows behind follows them and is not loaded again."""

    async def scenario(pair: Pair) -> None:
        index = pair.services[1].index
        await pair.provider()
        catalog = await index.current()
        await pair.services[1].feed.stop()  # it reads no changes until it is asked
        await traits(pair, 3 * ROWS_MAX)
        assert await index.current() is catalog
        assert len(catalog.traits) >= 3 * ROWS_MAX
        assert index.revision == pair.services[0].index.revision

    play(scenario)


def test_windows_of_two_histories_are_not_mixed() -> None:
    """If the history changes between two windows, the second is refused."""

    async def scenario(pair: Pair) -> None:
        await pair.provider()
        index = pair.services[1].index
        await index.current()
        began = index.revision
        await traits(pair, 2 * ROWS_MAX)
        async with aclosing(tails(index._engine, began, FOLLOWED_KINDS)) as found:
            shown = await anext(found)
            cut = shown.batches[-1].revision + 1
            moved = "UPDATE change SET at = at {} 1 WHERE revision = {}"
            with psycopg.connect(pair.url) as server:
                server.execute(moved.format("+", cut).encode())
            with pytest.raises(ChangesGone):
                await anext(found)
        with psycopg.connect(pair.url) as server:
            server.execute(moved.format("-", cut).encode())
        async with aclosing(tails(index._engine, began, FOLLOWED_KINDS)) as found:
            assert sum([len(tail.batches) async for tail in found]) == index.revision - began

    play(scenario)


def test_waiting_readers_are_woken_by_changes_only() -> None:
    """A look without changes wakes no reader, which would otherwise read again for each request."""

    async def scenario(pair: Pair) -> None:
        index, feed = pair.services[1].index, pair.services[1].feed
        await pair.provider(VCPU=1)
        await index.current()
        ring = feed.bell.listen()
        for _ in range(3):
            await index.current()
        assert not ring.is_set()
        await pair.one(vocabulary_cases.TraitEnsure("CUSTOM_A"))
        await index.current()
        assert ring.is_set()
        ring = feed.bell.listen()
        epoch, _ = await pair.services[0].operations.epoch_raise(by=TESTER)
        await index.current()
        assert ring.is_set()
        assert index.epoch == epoch

    play(scenario)


def test_an_epoch_that_is_raised_during_a_look() -> None:
    """What the look has found is older, but still valid: the index is not loaded again."""

    async def scenario(pair: Pair) -> None:
        service = pair.services[0]
        index = service.index
        await pair.provider()
        catalog = await index.current()
        engine = HoldingEngine(service.engine)
        service.feed._engine = engine
        engine.hold("look")
        looking = asyncio.create_task(index.current())
        await engine.reached["look"].wait()
        known = epochs(pair)
        raising = asyncio.create_task(service.operations.epoch_raise(by=TESTER))
        while epochs(pair) == known:
            await asyncio.sleep(0)
        engine.go["look"].set()
        epoch, _ = await raising
        assert await looking is catalog
        assert await index.current() is catalog
        assert index.epoch == epoch

    play(scenario)
