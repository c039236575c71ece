"""The row of each process: when agents were last heard of."""

import asyncio
from random import Random

import pytest

from moorage.core.clock import SECOND, Instant
from moorage.store.api import Engine, Plan
from moorage.store.changelog import changes_load
from moorage.store.fleet.heard import (
    MILLISECOND,
    UNKNOWN,
    Exchange,
    ages_from_text,
    ages_text,
    heard_load,
    heard_write,
)
from tests.store.build import NOW

FOREVER = 1 << 60


async def write(
    engine: Engine,
    process: str,
    ages: dict[int, int],
    *,
    now: Instant = NOW,
    kept: int = FOREVER,
    stopped: bool = False,
    ttl: int = 10 * SECOND,
) -> Exchange:
    """Overwrite the row of a process, and commit."""
    plan: Plan[Exchange] = heard_write(process, ages, ttl, now, kept=kept, stopped=stopped)
    async with engine.transaction() as transaction:
        exchange = await transaction.run(plan)
        await transaction.commit()
    return exchange


def test_a_process_overwrites_its_own_row(engine: Engine) -> None:
    """Each has one row, with what it wrote last; all are read, also without writing."""

    async def scenario() -> None:
        empty = await engine.read(heard_load(NOW))
        assert empty == Exchange(NOW, [])
        await write(engine, "one", {1: 0, 2: 7 * SECOND})
        await write(engine, "other", {2: SECOND}, ttl=60 * SECOND)
        last = await write(engine, "one", {3: 5 * SECOND}, stopped=True)
        rows = {row.process: row for row in last.rows}
        assert rows["one"][2:] == (10 * SECOND, True, {3: 5 * SECOND})
        assert rows["other"][2:] == (60 * SECOND, False, {2: SECOND})
        read = await engine.read(heard_load(NOW))
        assert {row.process: row for row in read.rows} == rows
        assert read.now >= last.now

    asyncio.run(scenario())


def test_rows_are_stamped_with_the_time_of_the_database(engine: Engine) -> None:
    """PostgreSQL has a clock that its processes share; on SQLite there is only the process's."""

    async def scenario() -> None:
        first = await write(engine, "one", {})
        again = await write(engine, "one", {}, now=Instant(NOW + SECOND))
        stamps = [exchange.rows[0].at for exchange in (first, again)]
        if engine.shared:
            assert NOW + SECOND < stamps[0] <= first.now < stamps[1] <= again.now
        else:
            assert [*zip(stamps, (first.now, again.now), strict=True)] == [
                (NOW, NOW),
                (NOW + SECOND, NOW + SECOND),
            ]

    asyncio.run(scenario())


def test_old_rows_of_others_are_deleted(engine: Engine) -> None:
    """A row is kept for as long as the writer says; its own is never deleted."""

    async def scenario() -> None:
        first = await write(engine, "one", {1: 0})
        later = Instant(NOW + SECOND)
        kept = await write(engine, "other", {}, now=later, kept=FOREVER)
        assert {row.process for row in kept.rows} == {"one", "other"}
        await write(engine, "other", {}, now=later, kept=-1)  # what is older than the next moment
        left = await engine.read(heard_load(later))
        assert [row.process for row in left.rows] == ["other"]
        assert left.rows[0].at > first.rows[0].at

    asyncio.run(scenario())


def test_a_beat_is_no_change(engine: Engine) -> None:
    """Rows of processes raise no revision and leave no change rows."""

    async def scenario() -> None:
        before = await engine.read(changes_load(0))
        await write(engine, "one", {n: n * SECOND for n in range(100)})
        assert await engine.read(changes_load(0)) == before

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "ages",
    [
        {},
        {0: 0},
        {5: 1},
        {1: MILLISECOND, 1_000: 2 * MILLISECOND - 1},
        {2: (UNKNOWN - 1) * MILLISECOND},
    ],
)
def test_ages_as_text(ages: dict[int, int]) -> None:
    """Ages are rounded up to milliseconds: nobody is taken for younger than it is."""
    expected = {n: -(-age // MILLISECOND) * MILLISECOND for n, age in ages.items()}
    assert ages_from_text(ages_text(ages)) == expected


def test_ages_that_are_too_long_for_a_row() -> None:
    """After 49 days an age stops to grow, but the agent remains known."""
    assert ages_from_text(ages_text({1: 10**18})) == {1: (UNKNOWN - 1) * MILLISECOND}


def test_a_row_of_a_large_fleet_is_small() -> None:
    """The row of 100,000 agents, of which each sends a sign of life in 60 s, is below 500 kB."""
    dice = Random(7)
    ages = {n: dice.randrange(60_000) * MILLISECOND for n in range(100_000)}
    text = ages_text(ages)
    assert len(text) < 500_000
    assert ages_from_text(text) == ages
