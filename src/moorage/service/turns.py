"""Turns: long work on the event loop goes one piece at a time, so that short work gets through.

A request takes several rounds of the loop. If every round first ran all searches that are waiting,
a claim would pay for them several times over; with turns each round runs one.
"""

import asyncio
from collections import deque


class Turns:
    """Hands out one turn in each round of the event loop, in the order of asking."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._given = False

    async def taken(self) -> None:
        """Wait for a turn; what the caller does until it next waits is one piece of work."""
        loop = asyncio.get_running_loop()
        if not self._given:
            self._given = True
            loop.call_soon(self._next)
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        """Give the turn of the next round, to somebody who still waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._given = False
