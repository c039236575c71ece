"""A run: one sequence after the other, each with a seed of its own, until there were enough."""

import time
from collections import Counter
from collections.abc import AsyncIterator

from tests.compare.asks import Ask
from tests.compare.playing import Outcome, Player
from tests.compare.report import kind_of
from tests.compare.shrinking import Shrinking
from tests.compare.sides import Sides


class Run:
    """Plays sequences and counts; `length` is how many requests follow the fleet of each."""

    def __init__(self, sides: Sides, seed: int, length: int) -> None:
        self._sides = sides
        self._seed = seed
        self._length = length
        self._began = time.monotonic()
        self.requests = 0
        self.sequences = 0
        self.forked = 0
        self.tolerated: Counter[str] = Counter()

    async def _next(self, player: Player) -> Outcome:
        self.sequences += 1
        outcome = await player.generate((self._seed, self.sequences), self._length)
        self.requests += outcome.requests
        self.forked += outcome.forked
        self.tolerated += outcome.tolerated
        return outcome

    async def surveyed(self, requests: int) -> AsyncIterator[Outcome]:
        """Yield how each sequence went, for about so many requests."""
        while self.requests < requests:
            yield await self._next(Player(self._sides, survey=True))

    async def until_found(self, requests: int) -> Outcome | None:
        """Return the smallest sequence that shows the first difference; None if there is none."""
        while self.requests < requests:
            outcome = await self._next(Player(self._sides))
            if outcome.findings:
                return await self._smallest(outcome)
        return None

    async def _smallest(self, outcome: Outcome) -> Outcome:
        kind = kind_of(outcome.findings[0])
        last = Outcome()

        async def shows(asks: list[Ask]) -> bool:
            nonlocal last
            again = await Player(self._sides, survey=True).repeat(asks)
            again.findings = [each for each in again.findings if kind_of(each) == kind]
            if again.findings:
                last = again
            return bool(again.findings)

        await Shrinking(shows).smallest(outcome.sent)
        return last if last.findings else outcome

    def counts(self) -> str:
        """Say how much was compared, and how often each deliberate difference was met."""
        seconds = time.monotonic() - self._began
        lines = [f"{count:8} {name}" for name, count in self.tolerated.most_common()]
        lines.append(
            f"compared {self.requests} requests in {self.sequences} sequences "
            f"({self.forked} of them until both had parted on purpose), {seconds:.0f} s"
        )
        return "\n".join(lines)
