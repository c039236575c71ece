"""The clock of everything that waits in an event loop: the loop's own.

So what is measured and what is waited for agree, also in a loop whose time is virtual.
"""

import asyncio


def monotonic() -> float:
    """Return the time of the running loop in seconds, by default that of `time.monotonic`."""
    return asyncio.get_running_loop().time()


async def first_of(*events: asyncio.Event, seconds: float | None = None) -> None:
    """Return at one of these events, or after a time; None: there is no such time."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
