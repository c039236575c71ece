"""Helpers for tests of searches: a client that stays connected, and work that never ends."""

import asyncio

from moorage.core.ledger.search.steps import Steps


async def never() -> None:
    """Never return: the client stays connected."""
    await asyncio.Event().wait()


async def next_round() -> None:
    """Let one round of the event loop pass."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(passed.set_result, None)
    await passed


class Endless:
    """Work that never ends; it records its number of steps and whether it was closed."""

    def __init__(self) -> None:
        self.steps = 0
        self.closed = False

    def work(self) -> Steps[None]:
        """Return the generator of the work."""
        try:
            while True:
                self.steps += 1
                yield
        finally:
            self.closed = True
