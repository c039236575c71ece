"""How often the commands of governors make passes."""

import asyncio

from moorage.integrations.provisioning.passes import CHANGES_SECONDS, passes
from tests.support.virtual_loop import VirtualLoop, run, turns


class Counting:
    """A governor that notes when its passes begin."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.made: list[float] = []

    async def tick(self) -> bool:
        """Make a pass."""
        self.made.append(self.loop.time())
        return True

    async def close(self) -> None:
        """Wait for nothing."""


def test_the_pace_of_passes() -> None:
    """A pass follows each change at once, but not more than five in a second; without changes one
    follows after the interval; a stop ends them at once.
    """

    async def scene(loop: VirtualLoop) -> None:
        stop, changed = asyncio.Event(), asyncio.Event()
        governor = Counting(loop)
        made = governor.made
        ready: list[str] = []
        making = passes(governor, lambda: ready.append("ready"), stop, 60.0, changed)
        task = asyncio.create_task(making)
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
        assert ready == ["ready"]

    run(scene)
