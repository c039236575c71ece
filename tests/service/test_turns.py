"""Turns: one piece of long work in each round of the event loop."""

import asyncio

from moorage.service.turns import Turns


def test_one_turn_a_round_in_order() -> None:
    """Short work that is ready runs between any two pieces, and nobody is passed over."""

    async def scene() -> None:
        turns, seen = Turns(), []

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

    asyncio.run(scene())


def test_who_gives_up_does_not_keep_the_others_waiting() -> None:
    """A cancelled caller's turn goes to the next."""

    async def scene() -> None:
        turns = Turns()
        await turns.taken()
        gone = asyncio.ensure_future(turns.taken())
        waits = asyncio.ensure_future(turns.taken())
        await asyncio.wait([asyncio.ensure_future(_nothing())])
        gone.cancel()
        await asyncio.wait_for(waits, 5)
        await asyncio.wait_for(turns.taken(), 5)

    asyncio.run(scene())


async def _nothing() -> None:
    """Let one round pass."""


def _places(seen: list[int]) -> list[int]:
    return [place for place, number in enumerate(seen) if number >= 0]
