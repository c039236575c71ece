"""Count the things that long work does between two pauses, never the time."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class TooMuch(AssertionError):
    """A generator has done more work between two yields than is allowed."""


def bounded(
    work: Generator[Any, None, T], count: Callable[[], int], most: int
) -> Generator[Any, None, T]:
    """Run a generator; raise TooMuch if `count` rises by more than `most` between two yields."""
    while True:
        before = count()
        try:
            passed = next(work)
        except StopIteration as stop:
            passed, ended = stop.value, True
        else:
            ended = False
        if count() - before > most:
            raise TooMuch(f"counted {count() - before} between two yields, at most {most} allowed")
        if ended:
            answer: T = passed
            return answer
        yield passed
