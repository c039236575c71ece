"""Turns: long work on the event loop goes one piece at a time, so that short work gets through.

A request takes several rounds of the loop. If every round first ran all searches that are waiting,
a claim would pay for them several times over; with turns each round runs one.

Work that can wait (a report of thousands of hosts) asks for spare turns. While changes are being
written it gets one every `PATIENCE_SECONDS` only: otherwise every round-trip of a batch to the
database would be followed by a piece of it, and the thread that commits would wait for the
interpreter's lock, which a loop that is never idle hardly ever leaves to it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

from moorage.core.ledger.search.steps import Steps

T = TypeVar("T")

PATIENCE_SECONDS = 0.005
"""How long spare turns are held back at most: the longest pause of work that can wait."""

PIECE_SECONDS = 0.000_5
"""How much of work that can wait is done in one turn."""

TURN_SECONDS = 0.002
"""How much of a long answer that somebody waits for is made in one turn."""


class Turns:
    """Hands out one turn in each round of the event loop, in the order of asking."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._overdue = False
        self._urgent = 0
        self.unit = asyncio.Lock()
        """Who has it writes one unit of long work; so units of many requests never pile up."""
        self._given = False
        """The turn of this round is given; `_next` is scheduled."""

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold spare turns back as long as this is entered: others wait for what is done."""
        self._urgent += 1
        try:
            yield
        finally:
            self._urgent -= 1
            if self._patient:
                self._begin()

    async def taken(self) -> None:
        """Wait for a turn; what the caller does until it next waits is one piece of work."""
        if not self._given:
            self._begin()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    async def driven(self, work: Steps[T]) -> T:
        """Carry out long work that somebody waits for, `TURN_SECONDS` in each turn."""
        while True:
            await self.taken()
            done = advanced(work)
            if done is not None:
                return done[0]

    async def spared(self) -> None:
        """As `taken`, but let everybody else go first, for `PATIENCE_SECONDS` at most."""
        if not (self._given or self._urgent or self._patient):
            self._begin()
            return
        turn = asyncio.get_running_loop().create_future()
        self._patient.append(turn)
        self._time()
        await turn

    def _begin(self) -> None:
        if not self._given:
            self._given = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Give the turn of the next round, to somebody who still waits."""
        turn = self._spare() or _first(self._waiting)
        self._given = turn is not None
        if turn is not None:
            turn.set_result(None)
            asyncio.get_running_loop().call_soon(self._next)

    def _spare(self) -> asyncio.Future[None] | None:
        if not self._overdue and (self._urgent or self._waiting):
            return None
        turn = _first(self._patient)
        self._overdue = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._patient:
            self._time()
        return turn

    def _time(self) -> None:
        """See to it that a spare turn is given before long, whatever else is going on."""
        if self._timer is None and not self._overdue:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PATIENCE_SECONDS, self._time_over)

    def _time_over(self) -> None:
        self._timer, self._overdue = None, True
        self._begin()


class Pieces:
    """One piece of long work after another, each of `PIECE_SECONDS`, in spare turns."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._end = 0.0
        self.unit = turns.unit
        """Entered for what changes something: one unit of all long work at a time."""

    async def rest(self) -> None:
        """Wait for a spare turn, if the time of the last one is over."""
        if perf_counter() >= self._end:
            await self._turns.spared()
            self._end = perf_counter() + PIECE_SECONDS

    async def driven(self, work: Steps[T]) -> T:
        """Carry out long work that can wait."""
        while True:
            await self.rest()
            try:
                next(work)
            except StopIteration as stop:
                answer: T = stop.value
                return answer

    async def each(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Hand out items, with rests in between."""
        for item in items:
            await self.rest()
            yield item


def advanced(work: Steps[T]) -> tuple[T] | None:
    """Do `TURN_SECONDS` of long work; return its answer, if it is done."""
    end = perf_counter() + TURN_SECONDS
    try:
        while perf_counter() < end:
            next(work)
    except StopIteration as stop:
        return (stop.value,)
    return None


def _first(waiting: deque[asyncio.Future[None]]) -> asyncio.Future[None] | None:
    """Take the first who still waits."""
    while waiting:
        turn = waiting.popleft()
        if not turn.done():
            return turn
    return None
