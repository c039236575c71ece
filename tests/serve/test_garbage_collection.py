"""Cycles that have lasted are collected, too, and what is there to stay is not walked again."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from moorage.serve.garbage import KEPT_MAX, THRESHOLDS, full_round, full_rounds

ROUND = THRESHOLDS[0] * (THRESHOLDS[1] + 2)
"""New objects after which the second generation has been looked at."""


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector of this process as it was."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Node:
    """Refers to itself: only the collector finds out that nobody else does."""

    def __init__(self) -> None:
        self.own = self


def old_cycle() -> "weakref.ref[Node]":
    """Make a cycle that lives through rounds of both younger generations, and let go of it."""
    node = Node()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(node)


async def after_many_objects() -> list[list[int]]:
    """Make so many objects that stay that the second generation is looked at."""
    made: list[list[int]] = [[] for _ in range(ROUND)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return made


def test_old_cycles_are_collected() -> None:
    """A cycle that outlived the younger rounds goes in the full round after the next of them."""

    async def scene() -> None:
        with full_rounds():
            cycle = old_cycle()
            made = await after_many_objects()
            assert cycle() is None
        assert len(made) == ROUND

    asyncio.run(scene())


def test_without_full_rounds_they_would_stay() -> None:
    """A control: the collector's own thresholds do not find it, however many objects are made."""

    async def scene() -> None:
        cycle = old_cycle()
        made = [await after_many_objects() for _ in range(3)]
        assert cycle() is not None
        assert len(made) == 3

    asyncio.run(scene())


def test_what_stays_is_not_walked_again() -> None:
    """Many survivors are frozen; few are not, so that they can still be collected."""
    few = [[] for _ in range(KEPT_MAX // 100)]
    frozen = gc.get_freeze_count()
    if len(gc.get_objects(generation=2)) > KEPT_MAX:
        gc.freeze()  # what the tests before have left
        frozen = gc.get_freeze_count()
    full_round()
    assert gc.get_freeze_count() == frozen
    many = [[] for _ in range(KEPT_MAX + 1)]
    full_round()
    assert gc.get_freeze_count() > frozen + KEPT_MAX
    assert len(gc.get_objects(generation=2)) < KEPT_MAX
    assert len(few) + len(many) > KEPT_MAX


def test_nothing_follows_when_it_is_over() -> None:
    """The callback goes with the server."""
    before = list(gc.callbacks)

    async def scene() -> None:
        with full_rounds():
            assert len(gc.callbacks) == len(before) + 1

    asyncio.run(scene())
    assert gc.callbacks == before
