"""Turns of callers: nobody waits for all the long work that another one has asked for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moorage.core.errors import Code, Error


class CallerTurns:
    """Admits one piece of long work at a time; callers take turns.

    Args:
        what: is waited for, for the message of a refusal.
        of_one_max: pieces of one caller that run or wait.
        total_max: pieces of all callers.
    """

    def __init__(self, what: str, of_one_max: int, total_max: int) -> None:
        self._what = what
        self._of_one_max = of_one_max
        self._total_max = total_max
        self._numbers: Counter[str] = Counter()
        self._own: dict[str, asyncio.Lock] = {}
        self._all = asyncio.Lock()

    @asynccontextmanager
    async def of(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn of a caller; it lasts as long as the context.

        Raises `Error`: OVERLOADED, too many wait.
        """
        if self._numbers[who] >= self._of_one_max:
            raise Error(Code.OVERLOADED, f"You wait for too many {self._what}; try again later.")
        if self._numbers.total() >= self._total_max:
            raise Error(Code.OVERLOADED, f"Too many {self._what} are waiting; try again later.")
        self._numbers[who] += 1
        own = self._own.setdefault(who, asyncio.Lock())
        try:
            async with own, self._all:
                yield
        finally:
            self._numbers[who] -= 1
            if not self._numbers[who]:
                del self._numbers[who], self._own[who]


FINDS_OF_ONE_MAX, FINDS_WAITING_MAX = 16, 256
"""Searches by a text of one caller, and of all, that run or wait."""


def finding_turns() -> CallerTurns:
    """Return the turns of searches by a text: each copies all names, and reads many leases."""
    return CallerTurns("searches", FINDS_OF_ONE_MAX, FINDS_WAITING_MAX)
