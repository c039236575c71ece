"""Measures several versions in turns: short bursts of the same requests to each of them.

The speed of a shared machine varies: it may drop to a third for an hour, and a comparison with an
earlier run is then meaningless. Neighbouring bursts meet the same machine. Some of the speed of a
process depends on chance at its start (memory layout): two processes of the same version differed
by 14 %. So all servers are started several times, and the medians of the starts are compared.
"""

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.fleet import Fleet
from bench.measure import require_success
from bench.target import NotStarted, Target, Unusable
from bench.wire import BrokenAnswer, Work, bounded, drive

LEAST = 3
"""Operations of a burst, at least."""


@dataclass(frozen=True)
class Question:
    """One line of the table. `make` returns its requests from the first on, for each server."""

    name: str
    connections: int
    make: Callable[[Fleet, Iterator[int]], Iterator[Work]]
    prepare: tuple[bytes, ...] = ()
    """What is sent once before."""
    comparable: bool = False
    """Whether the original is asked, too."""


@dataclass(frozen=True)
class Burst:
    """What one burst took. Times are in seconds."""

    operations: int
    processor: float
    elapsed: float
    p50: float


@dataclass(frozen=True)
class Effort:
    """The duration of a burst, the bursts per line and start, and the number of starts."""

    seconds: float
    rounds: int
    starts: int


@dataclass
class Side:
    """A server of one version; `numbers` yields its consumers, which lines must not share."""

    name: str
    target: Target
    numbers: Iterator[int]
    is_own: bool = False
    """Whether the others are compared with it."""
    lacks: dict[str, str] = field(default_factory=dict)
    """Why it has no figures, by the name of the line; "": it has none at all."""

    def asked(self, question: Question) -> bool:
        """Return whether it is asked this question."""
        return not {"", question.name} & self.lacks.keys() and (
            question.comparable or not self.target.peer
        )


Start = list[list[Burst | None]]
"""The bursts of one start: a list for each round, with a burst for each side; None: not asked."""

FAILURES = (Unusable, BrokenAnswer, NotStarted)


async def burst(side: Side, work: Iterator[Work], connections: int, seconds: float) -> Burst:
    """Measure one short burst of requests. Raises Unusable, BrokenAnswer."""
    target = side.target
    before = sum(target.processor_seconds())
    asked = bounded(work, seconds, LEAST, sys.maxsize)
    outcome = await drive(target.urls, asked, connections, keeps=target.keeps)
    require_success(outcome)
    spent = sum(target.processor_seconds()) - before
    median = statistics.median(outcome.seconds)
    return Burst(len(outcome.seconds), spent, outcome.elapsed, median)


async def measure(
    question: Question, hosts: Fleet, sides: Sequence[Side], effort: Effort, *, first: bool
) -> Start:
    """Measure all sides in turns; `first`: it is the first start. Raises Unusable, BrokenAnswer.

    What another side than the own one cannot answer, it is not asked again.
    """
    works = [question.make(hosts, side.numbers) for side in sides]
    found: Start = []
    for number in range(effort.rounds + 1):
        turn: list[Burst | None] = [None] * len(sides)
        for step in range(len(sides)):
            at = (number + step) % len(sides)
            side = sides[at]
            if not side.asked(question):
                continue
            try:
                if first and number == 0 and question.prepare:
                    require_success(await drive(side.target.urls, iter(question.prepare), 1))
                turn[at] = await burst(side, works[at], question.connections, effort.seconds)
            except FAILURES as failure:
                if side.is_own:
                    raise
                side.lacks[question.name] = str(failure)
        found.append(turn)
    del found[0]  # the warm-up
    return found


@dataclass(frozen=True)
class Ratio:
    """A figure of both sides, and how many times as good the first one is.

    `each` has the ratio of every start; the ratio is their median.
    """

    own: float
    other: float
    each: tuple[float, ...]

    @property
    def times(self) -> float:
        """Above 1: the first side is better."""
        return statistics.median(self.each)


@dataclass(frozen=True)
class Comparison:
    """One line of one side, compared with the first side.

    p50 and processor time (of one operation) are in milliseconds, the rate in operations a second.
    """

    fleet: Fleet
    question: Question
    against: str
    p50: Ratio
    processor: Ratio
    rate: Ratio


def compared(
    hosts: Fleet, question: Question, starts: Sequence[Start], at: int, against: str
) -> Comparison | None:
    """Compare the first side with the one at this place; None: it has no figures."""
    pairs = [
        [(own, other) for own, other in ((turn[0], turn[at]) for turn in start) if own and other]
        for start in starts
    ]
    pairs = [start for start in pairs if start]
    if not pairs:
        return None
    p50 = tuple(statistics.median(b.p50 / a.p50 for a, b in start) for start in pairs)
    both = [[[pair[side] for pair in start] for start in pairs] for side in (0, 1)]
    medians = [
        1_000 * statistics.median(one.p50 for start in side for one in start) for side in both
    ]
    return Comparison(
        hosts,
        question,
        against,
        Ratio(medians[0], medians[1], p50),
        _ratio(both, lambda bursts: 1_000 * _each(bursts, "processor"), fewer=True),
        _ratio(both, lambda bursts: 1 / _each(bursts, "elapsed"), fewer=False),
    )


def _each(bursts: Sequence[Burst], what: str) -> float:
    """Return the seconds of one operation."""
    spent: float = sum(getattr(one, what) for one in bursts)
    return spent / sum(one.operations for one in bursts)


def _ratio(
    both: Sequence[Sequence[Sequence[Burst]]],
    figure: Callable[[Sequence[Burst]], float],
    *,
    fewer: bool,
) -> Ratio:
    """Return a figure that is computed for each start; `fewer`: less of it is better."""
    own, other = ([figure(start) for start in side] for side in both)
    quotients = (b / a if fewer else a / b for a, b in zip(own, other, strict=True))
    return Ratio(statistics.median(own), statistics.median(other), tuple(quotients))
