"""An event loop whose time a test moves by hand, for what waits for minutes."""

import asyncio
from collections.abc import Awaitable, Callable


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time runs as always, and `advance` adds to it: what is due then happens at once."""

    ahead = 0.0

    def time(self) -> float:
        """Return the time of this loop in seconds."""
        return super().time() + self.ahead

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.ahead += seconds


async def turns(number: int = 50) -> None:
    """Let the loop turn some times, so that what is due is carried out."""
    for _ in range(number):
        await asyncio.sleep(0)


def run(scene: Callable[[VirtualLoop], Awaitable[None]]) -> None:
    """Run a scene in such a loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)

        async def main() -> None:
            await scene(loop)

        runner.run(main())
