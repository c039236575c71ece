"""Schedules cycle collection: young objects soon, old ones in small portions.

Python's default third threshold does not suit this process. A full collection scans all objects
that are not frozen, and a catalog that has grown since startup has millions: this would block the
event loop for a second. Without full collections, cycles that survive two younger ones, such as
those of long connections and requests, would never be freed.

So a full collection follows every collection of the second generation, at once, in the thread that
has created the objects: if the event loop did it later, it would also have to scan all objects that
the thread has created in between. It scans the objects that have survived since the last one, up to
40,000. If most of them remain, they are frozen, and no later collection scans them.

A frozen cycle that becomes garbage is never freed. So no request and no connection may leave a
cycle behind: `tests/serve/test_cycles.py` sends every kind of request and checks this.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

THRESHOLDS = (5_000, 4, 0)
"""Thresholds of `gc.set_threshold`; 0: a full collection follows each of the second generation."""

KEPT_MAX = 10_000
"""Objects that may remain after a full collection and are scanned again by the next one."""


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Exclude objects created inside from garbage collection, now and later.

    While a large fleet is loaded, collections would scan it again and again and find no garbage.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.collect()  # all is frozen; resets the size that CPython compares with new objects
        gc.set_threshold(*THRESHOLDS)
        gc.enable()


@contextlib.contextmanager
def freezing() -> Iterator[None]:
    """Freeze the objects that remain after a full collection, if they are many."""

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
