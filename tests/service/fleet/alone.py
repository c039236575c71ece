"""One service on SQLite whose look for silent agents runs only when the test wants it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.service.running import Running, running


def play(path: Path, scenario: Callable[[Running], Awaitable[None]]) -> None:
    """Play a scenario on such a service, in this folder."""

    async def run() -> None:
        async with running(path / "m.sqlite") as one:
            await one.service.fleet.liveness_loop.stop()
            await scenario(one)

    asyncio.run(run())
