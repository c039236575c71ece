"""Count the things that long work does between two pauses, never the time."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class TooMuch(AssertionError):
    """A piece of work has done more than it may."""


def bounded(
    work: Generator[Any, None, T], count: Callable[[], int], most: int
) -> Generator[Any, None, T]:
    """Pass work on; raise TooMuch when more than `most` is counted between two of its rests."""
    while True:
        before = count()
        try:
            passed = next(work)
        except StopIteration as stop:
            passed, ended = stop.value, True
        else:
            ended = False
        if count() - before > most:
            raise TooMuch(f"{count() - before} in one piece, at most {most} may be")
        if ended:
            answer: T = passed
            return answer
        yield passed
