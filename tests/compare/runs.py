"""A run: one sequence after another, each with its own seed, until there are enough requests."""

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.compare import sides
from tests.compare.generate.requests import Ask
from tests.compare.generate.sequences import Sequence
from tests.compare.generate.shrinking import Shrinking
from tests.compare.judge.defects import LEFT_BEHIND
from tests.compare.judge.deliberate import DELIBERATE
from tests.compare.playing import Outcome, Player
from tests.compare.report import Survey, kind_of, shown_differences
from tests.compare.sides import Sides
from tests.support.agents.proxy import proved, proxies

MANY = 20_000
"""After this many random requests, the deliberate differences that never occurred are reported."""

ENOUGH = 1_000
"""Within this many random requests, each route succeeds at least once."""


def say(text: str) -> None:
    """Write a line to standard output and flush it, because it may be a pipe."""
    sys.stdout.write(text.rstrip() + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one process; without `databases` the original is compared with itself.

    `agents`: every provider has an agent that offers this, one of `OFFERS`; None: none has.
    """

    seed: str
    requests: int
    length: int
    folder: Path
    databases: dict[str, str | Path]
    survey: bool = False
    agents: str | None = None


@dataclass(slots=True)
class Totals:
    """How much was compared, the findings, and how often each deliberate difference occurred."""

    random: int = 0
    all: int = 0
    sequences: int = 0
    forked: int = 0
    seconds: float = 0.0
    tolerated: Counter[str] = field(default_factory=Counter)
    carried_out: Counter[str] = field(default_factory=Counter)
    survey: Survey = field(default_factory=Survey)
    found: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether there was a difference that is not deliberate."""
        return bool(self.found or self.survey.kinds)

    def count(self, outcome: Outcome) -> None:
        """Add the outcome of a sequence."""
        self.sequences += 1
        self.random += outcome.random
        self.all += outcome.requests
        self.forked += outcome.forked
        self.tolerated += outcome.tolerated
        self.carried_out += outcome.carried_out

    def add(self, other: "Totals") -> None:
        """Add the totals of another process."""
        self.random += other.random
        self.all += other.all
        self.sequences += other.sequences
        self.forked += other.forked
        self.seconds = max(self.seconds, other.seconds)
        self.tolerated += other.tolerated
        self.carried_out += other.carried_out
        self.survey.merge(other.survey)
        self.found += other.found

    def unmet(self) -> list[str]:
        """Return the deliberate differences that did not occur."""
        names = [LEFT_BEHIND, *(one.name for one in DELIBERATE)]
        return [name for name in names if not self.tolerated[name]]

    def refused(self) -> list[str]:
        """Return the routes that never succeeded: comparing only their refusals proves little."""
        routes = {f"{method} {template}" for method, template, _ in Sequence(0).routes}
        return sorted(route for route in routes if not self.carried_out[route])

    def text(self) -> str:
        """Return the text of the report."""
        lines = [*self.found, self.survey.text(), "deliberate differences that occurred:"]
        lines += [f"{count:8} {name}" for name, count in self.tolerated.most_common()]
        if self.random >= MANY and (unmet := self.unmet()):
            lines.append(f"did not occur in this run: {', '.join(unmet)}")
        if self.random >= ENOUGH and (refused := self.refused()):
            lines.append(f"never succeeded in this run: {', '.join(refused)}")
        lines.append(
            f"compare: {self.random} random requests and {self.all - self.random} others in "
            f"{self.sequences} sequences ({self.forked} ended early because the states differed), "
            f"{self.seconds:.0f} s: {len(self.found) + len(self.survey.kinds)} kinds of differences"
        )
        return "\n".join(lines).lstrip()


@contextlib.asynccontextmanager
async def opened(task: Task) -> AsyncIterator[Sides]:
    """Start all sides of a task. Raises AssertionError if Moorage has logged a traceback."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(sides.original(task.folder / "original"))
        others = {
            engine: stack.enter_context(sides.ours(database))
            for engine, database in task.databases.items()
        }
        if not others:
            others["original"] = stack.enter_context(sides.original(task.folder / "itself", "1"))
        urls = {name: it.url for name, it in others.items()}
        agents = stack.enter_context(proxies([*urls.values()], task.agents))
        urls |= {name: one.url for name, one in zip(urls, agents, strict=False)}
        said = [f"{name} {it.url} (process {it.pid})" for name, it in others.items()]
        say(f"{task.seed}: original {first.url} (process {first.pid}), {', '.join(said)}")
        async with Sides.open(first.url, urls) as both:
            yield both
        assert proved(agents), "the agents did not do what they should"
        for name in task.databases:
            log = "".join(others[name].said)
            assert "Traceback" not in log, f"{name}: {log[-5_000:]}"


def play(task: Task) -> Totals:
    """Execute a task in this process."""
    return asyncio.run(run_task(task))


async def run_task(task: Task) -> Totals:
    """Execute a task to its end, or to the first finding."""
    totals = Totals()
    began = time.monotonic()
    async with opened(task) as both:
        while totals.random < task.requests and not totals.found:
            player = Player(both, survey=task.survey)
            outcome = await player.generate((task.seed, totals.sequences), task.length)
            totals.count(outcome)
            if task.survey:
                totals.survey.add(outcome)
            elif outcome.findings:
                totals.found.append(shown_differences(await smallest(both, outcome)))
    totals.seconds = time.monotonic() - began
    return totals


async def smallest(both: Sides, outcome: Outcome) -> Outcome:
    """Return the outcome of the smallest sequence that shows the first difference."""
    kind = kind_of(outcome.findings[0])
    best = outcome

    async def shows(asks: list[Ask]) -> bool:
        nonlocal best
        again = await Player(both, survey=True).repeat(asks)
        again.findings = [each for each in again.findings if kind_of(each) == kind]
        if again.findings:
            best = again
        return bool(again.findings)

    await Shrinking(shows).smallest(outcome.sent)
    return best
