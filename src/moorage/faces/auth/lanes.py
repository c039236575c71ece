"""Thread pools for queries to another service, with clients served in turn.

A client with many queries does not delay others: each client in turn gets one query. If too many
wait, queries of the client with the most are dropped.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from moorage.core.errors import Code, Error

T = TypeVar("T")

Turn = asyncio.Future[None]


class Lane:
    """A thread pool for the queries of one kind."""

    def __init__(self, name: str, threads: int, asking_max: int) -> None:
        """Create a lane.

        Args:
            name: prefix of the threads' names.
            threads: queries that run at the same time.
            asking_max: queries that run or wait.
        """
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads = threads
        self._asking_max = asking_max
        self._running = 0
        self._count = 0
        self._waiting: dict[str, deque[Turn]] = {}
        """Waiting queries by client, in the order of their turns; only clients that have some."""

    def enter(self, client: str) -> Turn:
        """Return the turn for one query of a client; it must be passed to `ask`.

        Raises `Error`: OVERLOADED. The turn may raise it, too, while it waits.
        """
        turn: Turn = asyncio.get_running_loop().create_future()
        if self._running < self._threads:
            self._running += 1
            turn.set_result(None)
            return turn
        if self._running + self._count >= self._asking_max:
            self._make_room(client)
        self._waiting.setdefault(client, deque()).append(turn)
        self._count += 1
        return turn

    async def ask(self, turn: Turn, question: Callable[[], T]) -> T:
        """Run a query in a thread when its turn comes. Raises its errors and those of `enter`."""
        try:
            await turn
            return await asyncio.get_running_loop().run_in_executor(self._pool, question)
        finally:
            # Also if cancelled between the turn and the query: the thread must be given back.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._running -= 1
                self._go_on()

    def _make_room(self, client: str) -> None:
        """Drop the newest query of the client with the most, unless that is this client."""
        most = max(self._waiting, key=lambda one: len(self._waiting[one]), default=client)
        turns = self._waiting.get(most, ())
        if not turns or len(turns) <= len(self._waiting.get(client, ())) + 1:
            raise _too_many()
        turn = self._waiting[most].pop()
        self._count -= 1
        if not turn.done():
            turn.set_exception(_too_many())

    def _go_on(self) -> None:
        """Start the first query of the next client, which then moves to the end of the round."""
        while self._waiting and self._running < self._threads:
            client = next(iter(self._waiting))
            turns = self._waiting.pop(client)
            turn = turns.popleft()
            self._count -= 1
            if turns:
                self._waiting[client] = turns
            if not turn.done():
                self._running += 1
                turn.set_result(None)


def _too_many() -> Error:
    return Error(Code.OVERLOADED, "Too many tokens are being validated; try again later.")
