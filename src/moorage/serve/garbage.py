"""When the garbage collector looks for cycles: soon at young objects, in portions at old ones.

Python's own third threshold serves this process badly. A full collection walks everything that is
not frozen, and an index that has grown since the start is millions of objects: the event loop would
be held for a second. Without full collections, cycles that were alive during two younger rounds
stay for ever: those of connections and requests that last.

So a full collection follows every round of the second generation. It walks what has survived such
rounds since the last one, about 200,000 objects. If most of them are there to stay, they are
frozen, and no later round walks them again.
"""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Any

THRESHOLDS = (50_000, 4, 1_000_000)
"""Objects, then rounds, until the collector looks by itself; full rounds are begun here instead."""

KEPT_MAX = 100_000
"""Objects that one full round may leave for the next one to walk again."""


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Keep what is loaded inside out of the garbage collector's rounds, now and later.

    They would walk all of a large fleet, which has no garbage: again and again while it is loaded.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()


@contextlib.contextmanager
def full_rounds() -> Iterator[None]:
    """Let full rounds follow those of the second generation, between two steps of the loop."""
    loop = asyncio.get_running_loop()

    def seen(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 1:
            loop.call_soon_threadsafe(full_round)  # any thread may have made the last object

    gc.callbacks.append(seen)
    try:
        yield
    finally:
        gc.callbacks.remove(seen)


def full_round() -> int:
    """Free all cycles that nobody can reach, but for frozen ones; return how many objects."""
    freed = gc.collect()
    if len(gc.get_objects(generation=2)) > KEPT_MAX:
        gc.freeze()
    return freed
