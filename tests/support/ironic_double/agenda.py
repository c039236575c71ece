"""The time of the double: moved by hand, or running at a multiple of real time."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class Agenda:
    """What happens at which virtual second; things of one second happen in the order of `at`."""

    def __init__(self, scale: float | None = None) -> None:
        """Start at second 0.

        Args:
            scale: virtual seconds per real second; None: time stands still until `advance`.
        """
        self.now = 0.0
        self.scale = scale
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._number = count()
        self._began: float | None = None

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something in this many seconds."""
        heapq.heappush(self._due, (self.now + seconds, next(self._number), action))
        if self.scale:
            # A little later: the clock of the loop is coarse, and it may call a little too early.
            later = seconds / self.scale + 0.001
            asyncio.get_running_loop().call_later(later, self.catch_up)

    async def wait(self, seconds: float, action: Callable[[], T]) -> T:
        """Do something in this many virtual seconds, exactly then; return its result."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def act() -> None:
            result = action()
            if not done.cancelled():
                done.set_result(result)

        self.at(seconds, act)
        return await done

    def advance(self, seconds: float) -> None:
        """Let time pass, with all that happens meanwhile."""
        self._run(self.now + seconds)

    def catch_up(self) -> None:
        """Do what is due: with real time all until now, otherwise what takes no time at all."""
        if not self.scale:
            return self._run(self.now)
        clock = asyncio.get_running_loop().time()
        self._began = clock if self._began is None else self._began
        self._run(max(self.now, (clock - self._began) * self.scale))

    def _run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until
