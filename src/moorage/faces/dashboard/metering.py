"""Measures the processor time of a coroutine, without that of others on the same event loop."""

import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Metered(Generic[T]):
    """Awaits something once, and counts the processor time of its steps.

    The time of threads and other tasks that it waits for does not count.
    """

    def __init__(self, awaited: Awaitable[T]) -> None:
        self._awaited = awaited
        self.seconds = 0.0
        """The processor time so far."""

    async def run(self) -> T:
        """Return the result. Raises what the awaited raises."""
        return await self

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._awaited.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            begun = time.thread_time()
            try:
                wanted = step()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.seconds += time.thread_time() - begun
            try:
                yield wanted
                step = partial(next, steps)
            except BaseException as error:  # of whatever kind: it belongs to the awaited
                step = partial(steps.throw, error)
