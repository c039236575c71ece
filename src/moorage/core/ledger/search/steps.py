"""Long work that may be interrupted: a generator that yields wherever others may go first."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Long work; what it returns is the answer.

Between two yields it does a number of things that is bounded, whatever it is asked for.
"""


def to_end(work: Steps[T]) -> T:
    """Carry out all of it at once; return its answer."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            answer: T = stop.value
            return answer
