"""Runs many requests, a few at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def run_bounded(most: int, work: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Run all work, `most` at the same time.

    The first error ends what is under way, and is raised; the rest is not begun.
    """
    todo = iter(work)

    async def worker() -> None:
        for one in todo:
            await one()

    workers = [asyncio.create_task(worker()) for _ in range(most)]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
