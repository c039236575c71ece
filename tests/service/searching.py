"""What tests of searches run: clients that stay, and work that never ends."""

import asyncio

from moorage.core.ledger.search.steps import Steps


async def never() -> None:
    """Be a client that stays."""
    await asyncio.Event().wait()


async def next_round() -> None:
    """Let the loop go round once."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(passed.set_result, None)
    await passed


class Endless:
    """Work that never ends, and tells how often it was carried on and that it was closed."""

    def __init__(self) -> None:
        self.steps = 0
        self.closed = False

    def work(self) -> Steps[None]:
        """Work."""
        try:
            while True:
                self.steps += 1
                yield
        finally:
            self.closed = True
