"""When the garbage collector looks for cycles: soon at young objects, in portions at old ones.

Python's own third threshold serves this process badly. A full collection walks everything that is
not frozen, and an index that has grown since the start is millions of objects: the event loop would
be held for a second. Without full collections, cycles that were alive during two younger rounds
stay for ever: those of connections and requests that last.

So a full collection follows every round of the second generation, at once, in the thread that has
made the objects: a loop that came to it later would have to walk whatever that thread has made
meanwhile. It walks what has survived since the last one, up to 40,000 objects. If most of them are
there to stay, they are frozen, and no later round walks them again.

What is frozen and becomes garbage in a cycle stays for ever. So no request and no connection may
leave a cycle behind: `tests/serve/test_cycles.py` asks everything there is and looks.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

THRESHOLDS = (5_000, 4, 0)
"""Objects until a round, rounds until one of the second generation, these until a full one."""

KEPT_MAX = 10_000
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
        gc.collect()  # of nothing; Python puts off full rounds while little is new beside the last
        gc.set_threshold(*THRESHOLDS)
        gc.enable()


@contextlib.contextmanager
def freezing() -> Iterator[None]:
    """Freeze what full rounds leave, whenever it is much."""

    def seen(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 2:
            freeze_many()

    gc.callbacks.append(seen)
    try:
        yield
    finally:
        gc.callbacks.remove(seen)


def freeze_many() -> None:
    """Freeze the oldest generation if it has more than `KEPT_MAX` objects."""
    if len(gc.get_objects(generation=2)) > KEPT_MAX:
        gc.freeze()
