"""The garbage collector frees old cycles, and does not walk long-lived objects again."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from moorage.serve.garbage import KEPT_MAX, THRESHOLDS, freezing, without_collector

ROUND = THRESHOLDS[0] * (THRESHOLDS[1] + 2)
"""The number of new objects after which all objects that are not frozen have been examined."""


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector of this process as it was."""
    before = gc.get_threshold()
    with without_collector():
        gc.collect()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Node:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.own = self


def old_cycle() -> "weakref.ref[Node]":
    """Make a cycle that survives rounds of both younger generations; return a weak reference."""
    node = Node()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(node)


def many_objects() -> list[list[int]]:
    """Make enough surviving objects for the collector to examine all others."""
    return [[] for _ in range(ROUND)]


def test_old_cycles_are_collected() -> None:
    """A cycle that survived the younger rounds is freed in the next full round, in any thread."""
    with freezing(), ThreadPoolExecutor(1) as threads:
        cycle = old_cycle()
        made = threads.submit(many_objects).result()
        assert cycle() is None
    assert len(made) == ROUND


def test_with_a_high_third_threshold_they_would_stay() -> None:
    """A control: the collector does not free the cycle, however many objects are made."""
    gc.set_threshold(*THRESHOLDS[:2], 1_000_000)
    cycle = old_cycle()
    made = [many_objects() for _ in range(3)]
    assert cycle() is not None
    assert len(made) == 3


def test_survivors_are_not_walked_again() -> None:
    """Many survivors are frozen; a few are not, so that they can still be collected."""
    with freezing():
        gc.freeze()  # objects left by earlier tests
        frozen = gc.get_freeze_count()
        few = [[] for _ in range(KEPT_MAX // 100)]
        gc.collect()
        assert gc.get_freeze_count() == frozen
        many = [[] for _ in range(KEPT_MAX + 1)]
        gc.collect()
        assert gc.get_freeze_count() > frozen + KEPT_MAX
        assert len(gc.get_objects(generation=2)) < KEPT_MAX
    assert len(few) + len(many) > KEPT_MAX


def test_no_round_walks_more_objects_than_were_made_since_the_last() -> None:
    """However fast a thread makes surviving objects, each full round leaves few for the next."""
    left: list[int] = []

    def seen(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            left.append(sum(len(gc.get_objects(generation=n)) for n in range(3)))

    with freezing(), ThreadPoolExecutor(1) as threads:
        gc.freeze()
        gc.callbacks.append(seen)
        try:
            made = threads.submit(lambda: [many_objects() for _ in range(10)]).result()
        finally:
            gc.callbacks.remove(seen)
    assert len(made) == 10
    assert len(left) > 5
    assert max(left) < KEPT_MAX + 2 * ROUND


def test_the_callback_is_removed_at_the_end() -> None:
    """It lasts no longer than the server."""
    before = list(gc.callbacks)

    with freezing():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before
