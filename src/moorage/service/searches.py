"""Searches for candidates: where each begins, how they take turns, and what the log says of them.

A search is a generator that the event loop runs piece by piece. A few long searches take turns, so
that none has to wait until another ends; only a few, so that their memory together is bounded.
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
from moorage.service.fair_turns import Turns, advanced

T = TypeVar("T")

QUICK_TURNS = 4
"""Turns that a search may take beside others; a search that needs more is a long one."""

ABREAST_MAX = 4
"""Long searches that take turns; each may hold about 75 MB."""

LONG_MAX = 32
"""Long searches that are in progress or wait for others to end."""

STARTS_MAX = 4_096
"""Queries whose next start is remembered."""

ASKED_SHOWN = 200
"""Bytes of a query that are logged."""

TELL_SECONDS = 60.0
"""Least time between two log lines of the same kind."""

log = logging.getLogger("moorage.searches")

Gone = Callable[[], Awaitable[None]]
"""Returns when the client has gone away."""

Whole = Callable[[], Awaitable[bool]]
"""Waits while the catalog holds one part of a batch and not yet another; says whether it had to."""


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


async def always_whole() -> bool:
    """Be a catalog that nobody changes in parts."""
    return False


@dataclass(slots=True)
class Counters:
    """How searches have ended since the start, for metrics."""

    cut: int = 0
    """Answers that may lack candidates because the search ran out of steps."""
    given_up: int = 0
    """Searches that ran out of steps before they found anything, including those of claims."""
    capped: int = 0
    """Answers that were cut at `candidates_max`."""


class Searches:
    """Carries out searches for candidates.

    Args:
        turns: Of the event loop.
        candidates_max: Candidates that an answer has at most; the setting of this name.
        steps_max: Steps that one search may take.
        chance: Returns a random number of a number of bits: where the first search begins.
        whole: Waits until the catalog is not in the middle of a batch; returns whether it had to.
    """

    def __init__(
        self,
        turns: Turns,
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
        self._told: dict[str, tuple[float, int]] = {}
        self.waiting = 0
        """Long searches, including those in progress."""
        self.counters = Counters()

    def candidates(
        self, catalog: Catalog, query: CandidateQuery, asked: bytes
    ) -> Steps[CandidateAnswer]:
        """Search; the next search for the same query begins where this one ends.

        Args:
            catalog: The providers as they are now.
            query: What is asked for.
            asked: The query as the client wrote it.

        Raises:
            Error: SEARCH_INCOMPLETE, the search ran out of steps before it found anything.
        """
        question = hash(asked)
        # An equal query that comes during this search begins somewhere else.
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
        """Count and log what an answer leaves out. Raises Error: SEARCH_INCOMPLETE."""
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
        said, unsaid = self._told.get(what, (0.0, 0))
        if said and now - said < TELL_SECONDS:
            self._told[what] = (said, unsaid + 1)
            return
        self._told[what] = (now, 0)
        more = f" ({unsaid} more like it since the last line)" if unsaid else ""
        log.warning("a search %s: %r%s", what, asked[:ASKED_SHOWN], more)

    async def reading(self, work: Steps[T]) -> T:
        """Run work that reads the catalog, piece by piece: listings and explanations.

        As in a search, no piece sees half of a batch.
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
            ClientGoneError: the client has gone away before the answer was ready.
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
        """Wait for a turn in which the catalog is as before a batch or as after it."""
        await taken()
        while await self._whole():
            await taken()

    async def _long_one(self, work: Steps[T], gone: Gone) -> T:
        if self.waiting >= LONG_MAX:
            raise Error(
                Code.OVERLOADED, f"{self.waiting} long searches are waiting already; try later."
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
        """Take one of the places of long searches, unless the client leaves before there is one.

        Raises ClientGoneError: it left. Whoever has gone must not fill the queue of those who wait.
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
