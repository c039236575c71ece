"""Plays a sequence on both sides and collects the differences."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.compare.exchange import Exchange, removal
from tests.compare.generate.requests import Ask, Generations
from tests.compare.generate.sequences import Sequence
from tests.compare.generate.state import looks
from tests.compare.judge.defects import LEFT_BEHIND
from tests.compare.judge.deliberate import deliberate_of
from tests.compare.judge.differences import Difference
from tests.compare.sides import Sides

LOOK_EVERY = 100
"""After this many requests the whole state of both sides is read."""

MAY_LEAVE_ORPHANS = {"/allocations", "/allocations/{consumer}", "/reshaper"}


@dataclass(slots=True)
class Finding:
    """A difference without a known reason."""

    engine: str
    exchange: Exchange
    difference: Difference


@dataclass(slots=True)
class Outcome:
    """The result of a sequence: the requests, the findings, and whether the states now differ.

    `requests` counts all requests, `random` only random ones; `carried_out` has the calls that
    both sides executed, searches for candidates only if they found any.
    """

    sent: list[Ask] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    tolerated: Counter[str] = field(default_factory=Counter)
    carried_out: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    random: int = 0
    forked: bool = False


class Player:
    """Sends requests to both sides and judges the answers; `exchanges` has those of a sequence.

    With `survey` it continues after a finding while both sides are in the same state.
    """

    def __init__(self, sides: Sides, *, survey: bool = False) -> None:
        self.sides = sides
        self.survey = survey
        self.outcome = Outcome()
        self.exchanges: list[Exchange] = []

    async def generate(self, seed: object, count: int) -> Outcome:
        """Play a new sequence."""
        await self._begin()
        sequence = Sequence(seed)
        for ask in sequence.fleet():
            if await self._sent(ask):
                return self.outcome
        for n in range(1, count + 1):
            self.outcome.random += 1
            if await self._sent(sequence.ask(await self.sides.generations())):
                return self.outcome
            if n % LOOK_EVERY == 0 and await self._looked():
                return self.outcome
        await self._looked()
        return self.outcome

    async def repeat(self, asks: Iterable[Ask], *, look: bool = True) -> Outcome:
        """Play these requests, then compare the whole state."""
        await self._begin()
        for ask in asks:
            if await self._sent(ask):
                return self.outcome
        if look:
            await self._looked()
        return self.outcome

    async def _begin(self) -> None:
        self.outcome = Outcome()
        self.exchanges.clear()
        await self.sides.reset()

    async def _sent(self, ask: Ask) -> bool:
        """Send and judge one request; return whether the sequence ends here."""
        self.outcome.sent.append(ask)
        return await self._judged(ask, await self.sides.generations())

    async def _looked(self) -> bool:
        """Read the whole state of both sides; return whether anything differs."""
        known = await self.sides.generations()
        before = len(self.outcome.findings)
        for ask in looks(known):
            if await self._judged(ask, known):
                return True
        found = self.outcome.findings[before:]
        return any(finding.difference.aspect.startswith(("body", "status")) for finding in found)

    async def _judged(self, ask: Ask, known: Generations) -> bool:
        self.outcome.requests += 1
        theirs, ours = await self.sides.send(ask, known)
        for engine, answer in ours.items():
            beginnings = (self.sides.original.beginning, self.sides.others[engine].beginning)
            exchange = Exchange(ask, known, theirs, answer, beginnings)
            await exchange.complete(self.sides)
            self.exchanges.append(exchange)
            self.outcome.carried_out[ask.what] += exchange.carried_out
            if (made := exchange.made_up()) is not None:
                await self._removed(engine, *made)
            for difference in exchange.differences():
                self._noted(engine, exchange, difference)
        if ask.template in MAY_LEAVE_ORPHANS and ask.method != "GET":
            left = await self.sides.forget_orphans()
            if left:
                self.outcome.tolerated[LEFT_BEHIND] += 1
        return self.outcome.forked or (bool(self.outcome.findings) and not self.survey)

    async def _removed(self, name: str, theirs: str, ours: str) -> None:
        """Delete a provider for which each side has generated a UUID."""
        for side, uuid in ((self.sides.original, theirs), (self.sides.others[name], ours)):
            answer = await side.peer.send(removal(uuid).bytes(Generations()))
            assert answer.status == 204 or side is self.sides.original, answer

    def _noted(self, engine: str, exchange: Exchange, difference: Difference) -> None:
        reason = deliberate_of(exchange, difference)
        if reason is None:
            self.outcome.findings.append(Finding(engine, exchange, difference))
            self.outcome.forked |= exchange.parts
        else:
            self.outcome.tolerated[reason.name] += 1
            self.outcome.forked |= reason.forks and exchange.writes
