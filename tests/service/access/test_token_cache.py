"""Tokens in memory: a fleet's are all cached, and the end of one costs nobody else a read."""

import asyncio
from pathlib import Path

from moorage.service.access import tokens as access_tokens
from moorage.service.access.tokens import AccessTokens, TokenCache
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.running import (
    CLASSES,
    TESTER,
    TRAITS,
    ManualClock,
    Watched,
    fatal,
    running,
)
from tests.support import cluster


def test_the_cache_drops_what_was_loaded_first() -> None:
    """Beyond the limit the first loaded token is dropped."""
    cache: TokenCache[int] = TokenCache(2)
    for n in range(3):
        cache.add(str(n), n, cache.drops)
    assert [cache.get(str(n)) for n in range(3)] == [None, 1, 2]


def test_a_token_that_may_have_ended_while_it_was_loaded_is_not_cached() -> None:
    """A load that began before any drop could bring back a revoked token."""
    cache: TokenCache[int] = TokenCache(2)
    drops = cache.drops
    cache.drop(["unknown"])
    cache.add("a", 1, drops)
    assert cache.get("a") is None
    cache.add("a", 1, cache.drops)
    drops = cache.drops
    cache.clear()
    cache.add("b", 1, drops)
    assert (cache.get("a"), cache.get("b")) == (None, None)


def test_a_revocation_costs_other_tokens_no_read(tmp_path: Path) -> None:
    """The other tokens stay cached; the revoked and the rotated one are refused at once."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            access = one.service.access
            made = [await access.create(f"t{n}", "service", by=TESTER) for n in range(4)]
            assert all([await access.find(secret) for secret, _ in made])
            await access.revoke(made[0][1].id, by=TESTER)
            await access.rotate(made[1][1].id, grace=0, by=TESTER)
            reads = one.engine.reads
            assert await access.find(made[2][0]) is not None
            assert await access.find(made[3][0]) is not None
            assert one.engine.reads == reads
            assert await access.find(made[0][0]) is None
            assert await access.find(made[1][0]) is None

    asyncio.run(run())


def test_tokens_beyond_the_limit_are_read_again(tmp_path: Path) -> None:
    """This is the control of the test above: a cache that is too small reads."""

    async def run() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            small = AccessTokens(one.engine, one.service.transactor, one.clock, cache_max=1)
            made = [await small.create(f"t{n}", "service", by=TESTER) for n in range(2)]
            reads = one.engine.reads
            for secret, _ in made * 2:
                assert await small.find(secret) is not None
            assert one.engine.reads == reads + 4

    asyncio.run(run())


async def _other_process(url: str) -> Service:
    engine = open_engine(url)
    return await Service.start(engine, ManualClock(), CLASSES, TRAITS, on_fatal=fatal)


def test_a_revocation_elsewhere_drops_one_token() -> None:
    """A process reads which tokens a peer has ended, and forgets only these."""

    async def run() -> None:
        url = cluster.fresh()
        engine, clock = Watched(open_engine(url)), ManualClock()
        here = await Service.start(engine, clock, CLASSES, TRAITS, on_fatal=fatal)
        there = await _other_process(url)
        try:
            access = here.access
            made = [await access.create(f"t{n}", "service", by=TESTER) for n in range(3)]
            assert all([await access.find(secret) for secret, _ in made])
            await there.access.revoke(made[0][1].id, by=TESTER)
            reads = engine.reads
            assert await access.find(made[1][0]) is not None
            assert engine.reads == reads + 2  # the look, and what has ended; no token again
            assert await access.find(made[2][0]) is not None
            assert engine.reads == reads + 3  # the look
            assert await access.find(made[0][0]) is None
        finally:
            await here.stop()
            await there.stop()

    asyncio.run(run())


def test_many_ends_elsewhere_drop_all_tokens() -> None:
    """A process that has missed more ends than one look reads forgets everything."""

    async def run() -> None:
        url = cluster.fresh()
        here, there = await _other_process(url), await _other_process(url)
        try:
            ended = access_tokens.ENDED_MAX + 1
            secret, token = await here.access.create("t", "service", by=TESTER)
            valid, _ = await here.access.create("u", "service", by=TESTER)
            assert await here.access.find(secret) is not None
            made = [there.access.create(f"t{n}", "service", by=TESTER) for n in range(ended)]
            others = [one.id for _, one in await asyncio.gather(*made)]
            gone = [there.access.revoke(one, by=TESTER) for one in (*others, token.id)]
            await asyncio.gather(*gone)
            assert await here.access.find(secret) is None
            assert await here.access.find(valid) is not None
        finally:
            await here.stop()
            await there.stop()

    asyncio.run(run())
