"""Turns: at most one piece of long work in each round of the event loop."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from time import perf_counter

from moorage.service.fair_turns import PATIENCE_SECONDS, PIECE_SECONDS, FairTurns, Pieces


def test_one_turn_a_round_in_order() -> None:
    """Short work that is ready runs between any two pieces, and pieces run in order."""

    async def scenario() -> None:
        turns, seen = FairTurns(), []

        async def piece(number: int) -> None:
            await turns.taken()
            seen.append(number)

        def tick() -> None:
            seen.append(-1)
            if len(seen) < 30:
                asyncio.get_running_loop().call_soon(tick)

        tick()
        await asyncio.gather(*(piece(number) for number in range(8)))
        pieces = [number for number in seen if number >= 0]
        assert pieces == list(range(8))
        between = [b - a for a, b in zip(_places(seen), _places(seen)[1:], strict=False)]
        assert all(distance >= 2 for distance in between)

    asyncio.run(scenario())


def test_a_cancelled_caller_does_not_keep_the_others_waiting() -> None:
    """A cancelled caller's turn goes to the next."""

    async def scenario() -> None:
        turns = FairTurns()
        await turns.taken()
        gone = asyncio.ensure_future(turns.taken())
        waits = asyncio.ensure_future(turns.taken())
        await asyncio.wait([asyncio.ensure_future(_nothing())])
        gone.cancel()
        await asyncio.wait_for(waits, 5)
        await asyncio.wait_for(turns.taken(), 5)

    asyncio.run(scenario())


async def _nothing() -> None:
    """Let one round pass."""


def _places(seen: list[int]) -> list[int]:
    return [place for place, number in enumerate(seen) if number >= 0]


def test_spare_turns_wait_while_changes_are_written() -> None:
    """During urgent work there is one spare turn per `PATIENCE_SECONDS`; afterwards all follow."""

    async def scenario() -> None:
        turns = FairTurns()
        loop = asyncio.get_running_loop()
        with turns.urgent:
            began = loop.time()
            waits = [asyncio.ensure_future(turns.spared()) for _ in range(3)]
            await asyncio.wait_for(turns.taken(), 5)
            assert not any(each.done() for each in waits)
            await asyncio.wait_for(waits[0], 5)
            assert loop.time() - began >= 0.9 * PATIENCE_SECONDS
            assert not waits[1].done() and not waits[2].done()
            await asyncio.wait_for(waits[1], 5)
            assert loop.time() - began >= 1.8 * PATIENCE_SECONDS
            assert not waits[2].done()
        await _rounds(4)
        assert waits[2].done()

    asyncio.run(scenario())


def test_spare_turns_come_after_the_others() -> None:
    """Ordinary turns go first even if they are requested later; spare turns follow."""

    async def scenario() -> None:
        turns, seen = FairTurns(), []

        async def piece(name: str, taken: Callable[[], Awaitable[None]]) -> None:
            await taken()
            seen.append(name)

        first = piece("other", turns.taken)
        patient = piece("patient", turns.spared)
        await asyncio.gather(first, patient, *(piece("other", turns.taken) for _ in range(2)))
        assert seen == ["other", "other", "other", "patient"]

    asyncio.run(scenario())


def test_items_are_spread_over_turns() -> None:
    """All items arrive in order; other work runs between them when they take long."""

    async def scenario() -> None:
        turns, ticks, seen = FairTurns(), 0, []

        def tick() -> None:
            nonlocal ticks
            ticks += 1
            if len(seen) < 20:
                asyncio.get_running_loop().call_soon(tick)

        tick()
        async for item in Pieces(turns).each(range(20)):
            seen.append((item, ticks))
            _work(PIECE_SECONDS)
        assert [item for item, _ in seen] == list(range(20))
        assert all(a < b for (_, a), (_, b) in itertools.pairwise(seen))

    asyncio.run(scenario())


def _work(seconds: float) -> None:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


async def _rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.ensure_future(_nothing())
