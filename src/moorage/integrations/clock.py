"""The clock of everything that waits in an event loop: the loop's own.

So what is measured and what is waited for agree, also in a loop whose time is virtual.
"""

import asyncio


def monotonic() -> float:
    """Return the time of the running loop in seconds, by default that of `time.monotonic`."""
    return asyncio.get_running_loop().time()
