"""How often the governor's command makes passes."""

import asyncio

from moorage.cli.commands.metal3.govern import CHANGES_SECONDS, passes
from tests.support.virtual_loop import VirtualLoop, run, turns


def test_the_pace_of_passes() -> None:
    """A pass follows each change at once, but not more than five in a second; without changes one
    follows after the interval; a stop ends them at once.
    """

    async def scene(loop: VirtualLoop) -> None:
        stop, changed = asyncio.Event(), asyncio.Event()
        made: list[float] = []

        async def make() -> None:
            made.append(loop.time())

        task = asyncio.create_task(passes(make, stop, changed, 60.0))
        await turns()
        assert len(made) == 1
        loop.advance(50)
        await turns()
        assert len(made) == 1
        for _ in range(100):
            changed.set()
            loop.advance(CHANGES_SECONDS / 10)
            await turns()
        assert 9 <= len(made) <= 12
        changed.clear()
        loop.advance(CHANGES_SECONDS)
        await turns()
        before = len(made)
        loop.advance(61)
        await turns()
        assert len(made) == before + 1
        stop.set()
        await turns()
        assert task.done()

    run(scene)
