"""Turns: long work on the event loop runs piece by piece, so that short requests are not delayed.

A request takes several rounds of the event loop. If each round ran a piece of every waiting search,
a claim would wait for all of them several times; with turns each round runs one piece.

Work that can wait (a report of thousands of hosts) uses spare turns. While a batch is written it
gets only one every `PATIENCE_SECONDS`. Otherwise a piece of it would follow every round-trip of the
batch to the database, and the committing thread would wait for the GIL, which a busy loop rarely
releases.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from time import perf_counter
from typing import TypeVar

from moorage.core.ledger.search.steps import Steps

T = TypeVar("T")

PATIENCE_SECONDS = 0.005
"""The longest time that spare turns are delayed."""

PIECE_SECONDS = 0.000_5
"""Duration of one spare turn."""

TURN_SECONDS = 0.002
"""Duration of one turn of long work that a client waits for."""


class Urgent:
    """A context that several requests may be in; `count` of them are."""

    def __init__(self, ended: Callable[[], None]) -> None:
        """Create it; `ended` is called whenever a request leaves it."""
        self.count = 0
        self._ended = ended

    def __enter__(self) -> None:
        """Enter it."""
        self.count += 1

    def __exit__(self, *_: object) -> None:
        """Leave it."""
        self.count -= 1
        self._ended()


class FairTurns:
    """Gives out one turn per round of the event loop, first come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._overdue = False
        self.urgent = Urgent(self._urgency_over)
        """A context that delays spare turns: other requests wait for its work."""
        self.unit = asyncio.Lock()
        """Held while one unit of long work is written, so that units of requests do not pile up."""
        self._given = False
        """Whether the turn of this round is given; `_next` is then scheduled."""

    async def taken(self) -> None:
        """Wait for a turn, which lasts until the caller next awaits something."""
        if not self._given:
            self._begin()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    async def driven(self, work: Steps[T]) -> T:
        """Run long work that a client waits for, `TURN_SECONDS` in each turn."""
        while True:
            await self.taken()
            done = advanced(work)
            if done is not None:
                return done[0]

    async def spared(self) -> None:
        """As `taken`, but after all other work, delayed by `PATIENCE_SECONDS` at most."""
        if not (self._given or self.urgent.count or self._patient):
            self._begin()
            return
        turn = asyncio.get_running_loop().create_future()
        self._patient.append(turn)
        self._time()
        await turn

    def _urgency_over(self) -> None:
        if self._patient:
            self._begin()

    def _begin(self) -> None:
        if not self._given:
            self._given = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Give the turn of the next round to a task that still waits."""
        turn = self._spare() or _first(self._waiting)
        self._given = turn is not None
        if turn is not None:
            turn.set_result(None)
            asyncio.get_running_loop().call_soon(self._next)

    def _spare(self) -> asyncio.Future[None] | None:
        if not self._overdue and (self.urgent.count or self._waiting):
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
        """Start the timer that limits the delay of spare turns."""
        if self._timer is None and not self._overdue:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PATIENCE_SECONDS, self._time_over)

    def _time_over(self) -> None:
        self._timer, self._overdue = None, True
        self._begin()


class Pieces:
    """Runs long work in spare turns, in pieces of `PIECE_SECONDS`."""

    def __init__(self, turns: FairTurns) -> None:
        self._turns = turns
        self._end = 0.0
        self.unit = turns.unit
        """A lock for changes: only one unit of all long work is written at a time."""

    async def rest(self) -> None:
        """Wait for a spare turn, if the last one is used up."""
        if perf_counter() >= self._end:
            await self._turns.spared()
            self._end = perf_counter() + PIECE_SECONDS

    async def driven(self, work: Steps[T]) -> T:
        """Run long work that can wait."""
        while True:
            await self.rest()
            try:
                next(work)
            except StopIteration as stop:
                answer: T = stop.value
                return answer

    async def each(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Yield the items, with pauses in between."""
        for item in items:
            await self.rest()
            yield item


def advanced(work: Steps[T]) -> tuple[T] | None:
    """Run long work for `TURN_SECONDS`; return its answer in a tuple, or None if unfinished."""
    end = perf_counter() + TURN_SECONDS
    try:
        while perf_counter() < end:
            next(work)
    except StopIteration as stop:
        return (stop.value,)
    return None


def _first(waiting: deque[asyncio.Future[None]]) -> asyncio.Future[None] | None:
    """Remove and return the first future that is still pending, or None."""
    while waiting:
        turn = waiting.popleft()
        if not turn.done():
            return turn
    return None
