"""Runs searches for candidates: their starting points, turns and log lines.

A search is a generator that the event loop runs piece by piece. A few long searches run in turns,
so that none waits for the end of another; only a few, to bound their total memory.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import getrandbits
from time import perf_counter
from typing import TypeVar

from moorage.core.errors import Code, Error
from moorage.core.ledger.requests import CandidateAnswer, CandidateQuery, Start
from moorage.core.ledger.search import Catalog, searched
from moorage.core.ledger.search.budget import Budget
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATE_STEPS_MAX, CANDIDATES_MAX
from moorage.service.fair_turns import FairTurns, advanced

T = TypeVar("T")

QUICK_TURNS = 4
"""Turns after which a search counts as a long one."""

ABREAST_MAX = 4
"""Long searches that run in turns; each may use about 75 MB."""

LONG_MAX = 32
"""Long searches that run or wait."""

STARTS_MAX = 4_096
"""Queries whose next starting point is kept."""

ASKED_SHOWN = 200
"""Bytes of a query that are logged."""

TELL_SECONDS = 60.0
"""The minimum time between two log lines of the same kind."""

log = logging.getLogger("moorage.searches")

Gone = Callable[[], Awaitable[None]]
"""Returns when the client has disconnected."""

Whole = Callable[[], Awaitable[bool]]
"""Waits while the catalog contains only a part of a batch; returns whether it had to wait."""


class ClientGoneError(Exception):
    """The client has disconnected."""


async def always_whole() -> bool:
    """Return False: for a catalog that never contains only a part of a batch."""
    return False


@dataclass(slots=True)
class SearchCounters:
    """Outcomes of searches since the start, for metrics."""

    cut: int = 0
    """Answers that may lack candidates because the search ran out of steps."""
    given_up: int = 0
    """Searches that ran out of steps before they found anything, including those of claims."""
    capped: int = 0
    """Answers that were cut at `candidates_max`."""


class Searches:
    """Runs searches for candidates.

    Args:
        turns: Of the event loop.
        candidates_max: The most candidates of an answer; the setting of this name.
        steps_max: Steps that one search may take.
        chance: Returns a random number with this many bits, for the first starting point.
        whole: Waits until the catalog has no partly applied batch; returns whether it had to.
    """

    def __init__(
        self,
        turns: FairTurns,
        candidates_max: int = CANDIDATES_MAX,
        steps_max: int = CANDIDATE_STEPS_MAX,
        chance: Callable[[int], int] = getrandbits,
        whole: Whole = always_whole,
    ) -> None:
        self._turns = turns
        self._whole = whole
        self._candidates_max = candidates_max
        self.steps_max = steps_max
        """Steps that one search may take from now on."""
        self._chance = chance
        self._starts: OrderedDict[int, Start] = OrderedDict()
        self._long = asyncio.Semaphore(ABREAST_MAX)
        self._logged: dict[str, tuple[float, int]] = {}
        self.waiting = 0
        """Long searches, including those in progress."""
        self.counters = SearchCounters()

    def candidates(
        self, catalog: Catalog, query: CandidateQuery, asked: bytes
    ) -> Steps[CandidateAnswer]:
        """Search; the next search for the same query begins where this one ends.

        Args:
            catalog: The current catalog.
            query: The query.
            asked: The query as the client wrote it.

        Raises:
            Error: SEARCH_INCOMPLETE, the search ran out of steps before it found anything.
        """
        question = hash(asked)
        # An equal query that arrives during this search starts at another, random point.
        start = self._starts.pop(question, None)
        if start is None:
            start = Start(self._chance(32), 0, self._chance(32))
        budget = Budget(self.steps_max)
        answer = yield from searched(catalog, query, start, self._candidates_max, budget)
        self._starts[question] = answer.then
        if len(self._starts) > STARTS_MAX:
            self._starts.popitem(last=False)
        self._judge(answer, asked)
        return answer

    def _judge(self, answer: CandidateAnswer, asked: bytes) -> None:
        """Count and log an incomplete answer. Raises Error: SEARCH_INCOMPLETE, it is empty."""
        if answer.capped:
            self.counters.capped += 1
            self._tell(f"was cut at {len(answer.candidates)} candidates (candidates_max)", asked)
        if answer.exhausted:
            return
        if not answer.candidates:
            self.given_up(asked)
            raise Error(
                Code.SEARCH_INCOMPLETE,
                "The search ran out of steps before it found anything. Try again: the next search "
                "begins where this one ended. Or make the query more specific.",
            )
        self.counters.cut += 1
        self._tell("left out trees because it ran out of steps", asked)

    def given_up(self, asked: bytes) -> None:
        """Count and log a search that ran out of steps before it found anything."""
        self.counters.given_up += 1
        self._tell("ran out of steps before it found anything", asked)

    def _tell(self, what: str, asked: bytes) -> None:
        """Log one line of a kind at most every `TELL_SECONDS`."""
        now = perf_counter()
        said, unsaid = self._logged.get(what, (0.0, 0))
        if said and now - said < TELL_SECONDS:
            self._logged[what] = (said, unsaid + 1)
            return
        self._logged[what] = (now, 0)
        more = f" ({unsaid} more of this kind since the last line)" if unsaid else ""
        log.warning("a search %s: %r%s", what, asked[:ASKED_SHOWN], more)

    async def reading(self, work: Steps[T]) -> T:
        """Run work that reads the catalog, piece by piece: listings and explanations.

        As in a search, no piece sees a partly applied batch.
        """
        while True:
            await self._turn(self._turns.taken)
            done = advanced(work)
            if done is not None:
                return done[0]

    async def driven(self, work: Steps[T], gone: Gone) -> T:
        """Run a search and the work that follows it, piece by piece.

        Raises:
            Error: OVERLOADED, too many long searches are waiting already.
            ClientGoneError: the client disconnected before the answer was ready.
        """
        try:
            for _ in range(QUICK_TURNS):
                await self._turn(self._turns.taken)
                done = advanced(work)
                if done is not None:
                    return done[0]
            return await self._long_one(work, gone)
        finally:
            work.close()

    async def _turn(self, taken: Callable[[], Awaitable[None]]) -> None:
        """Wait for a turn in which the catalog has no partly applied batch."""
        await taken()
        while await self._whole():
            await taken()

    async def _long_one(self, work: Steps[T], gone: Gone) -> T:
        if self.waiting >= LONG_MAX:
            raise Error(
                Code.OVERLOADED,
                f"{self.waiting} long searches are waiting already; try again later.",
            )
        self.waiting += 1
        leaving = asyncio.ensure_future(gone())
        try:
            async with self._place(leaving):
                while not leaving.done():
                    await self._turn(self._turns.spared)
                    done = advanced(work)
                    if done is not None:
                        return done[0]
            raise ClientGoneError
        finally:
            self.waiting -= 1
            leaving.cancel()

    @asynccontextmanager
    async def _place(self, leaving: asyncio.Future[None]) -> AsyncIterator[None]:
        """Wait for one of the places of long searches while the client is connected.

        Raises ClientGoneError: it disconnected. Such searches must not fill the queue.
        """
        place = asyncio.ensure_future(self._long.acquire())
        try:
            await asyncio.wait((place, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not place.done():
                raise ClientGoneError
            yield
        finally:
            if not place.cancel():
                self._long.release()
