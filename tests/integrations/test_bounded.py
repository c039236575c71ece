"""Many requests at once, but not too many."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from moorage.integrations.bounded import run_bounded

MOST = 3


class Work:
    """Counts what runs at the same time. `bad`: the number of the one that fails."""

    def __init__(self, bad: int | None = None) -> None:
        self.bad = bad
        self.running = self.most = 0
        self.done: list[int] = []
        self.begun: list[int] = []

    def all(self, number: int) -> list[Callable[[], Awaitable[object]]]:
        """Return so much work."""
        return [partial(self._one, one) for one in range(number)]

    async def _one(self, number: int) -> None:
        self.begun.append(number)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            if number == self.bad:
                raise KeyError(number)
            self.done.append(number)
        finally:
            self.running -= 1


def test_all_work_is_done_a_few_at_a_time() -> None:
    """Never more than the bound run, and all are done."""
    work = Work()
    asyncio.run(run_bounded(MOST, work.all(20)))
    assert sorted(work.done) == [*range(20)]
    assert work.most == MOST


def test_the_first_error_ends_all() -> None:
    """Nothing runs after the error was raised, and what was not begun never is."""
    work = Work(bad=4)
    with pytest.raises(KeyError):
        asyncio.run(run_bounded(MOST, work.all(20)))
    assert work.running == 0
    assert max(work.begun) < 4 + 2 * MOST


def test_no_work_at_all() -> None:
    """It returns at once."""
    asyncio.run(run_bounded(MOST, []))
