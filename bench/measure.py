"""Measure one line: drive the work within its bounds, and add up its cost by process."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from bench.fleet import Fleet
from bench.machine import Moment
from bench.target import Target
from bench.wire import Answer, Outcome, Work, ask, bounded, drive

WARM_UP_SECONDS_MAX = 0.3
LEAST = 5
"""Operations of every line, however long they take."""
MOST = 10**9


@dataclass(frozen=True)
class Measurement:
    """One line of the report. Times are in milliseconds; processor times per operation.

    `rate` counts what succeeded. `others` is the share of all processors that neither the service,
    its database nor the load generator had; `steal` what other machines took.
    """

    fleet: str
    what: str
    target: str
    peer: bool
    connections: int
    operations: int
    failed: int
    refused: int
    rate: float
    p50: float
    p99: float
    server_cpu: float
    database_cpu: float
    server_mb: float
    database_mb: float
    answer_bytes: int
    load_before: float
    steal: float
    others: float
    note: str = ""
    items: int = 1
    """What one operation does at once, for the comparison."""
    versus: str = ""
    """The line of the original that it is compared with, if that has another name."""
    complaint: str = ""


@dataclass(frozen=True)
class Check:
    """Something that must hold at any speed; `kept` says whether it did."""

    fleet: str
    what: str
    target: str
    peer: bool
    kept: bool
    told: str


@dataclass(frozen=True)
class Options:
    """How long each line takes, and how much the special ones do."""

    seconds: float = 1.2
    loading_seconds: float = 5.0
    """How long the original is given to load a fleet over HTTP; SQL does the rest."""
    connections: tuple[int, ...] = (1, 8, 64)
    races: int = 60
    reported: int = 3_100


@dataclass
class Bench:
    """One service with one fleet, and what has been measured on it so far."""

    target: Target
    fleet: Fleet
    options: Options
    shown: Callable[[Measurement | Check], None]
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers of unused consumers."""
    empty_bytes: int = 0
    """Memory of the service before the fleet was loaded."""

    async def drive(self, work: Iterator[Work], connections: int) -> Outcome:
        """Do some work that is not measured."""
        target = self.target
        return await drive(target.urls, work, connections, keeps=target.keeps)

    async def ask(self, request: bytes) -> Answer:
        """Send one request that is not measured."""
        return await ask(self.target.urls[0], request, keeps=self.target.keeps)

    async def line(
        self,
        what: str,
        work: Iterator[Work],
        connections: int,
        *,
        least: int = LEAST,
        most: int = MOST,
        seconds: float | None = None,
        warm: bool = True,
        refusable: bool = False,
        note: str = "",
        items: int = 1,
        versus: str = "",
    ) -> tuple[Measurement, Outcome]:
        """Measure one line and show it.

        Args:
            what: its name.
            work: handed out for `seconds`, but `least` operations and never over `most`.
            connections: how many operations are under way at once.
            least: operations to do however long they take, at least one per connection.
            most: operations never to exceed.
            seconds: how long; by default as the options say.
            warm: may work be spent on warming up?
            refusable: is 409 an answer like another here, not a failure?
            note: what else is to be known about it.
            items: what one operation does at once.
            versus: the line of the original to compare with, if it has another name.
        """
        seconds = self.options.seconds if seconds is None else seconds
        if warm:
            limit = min(WARM_UP_SECONDS_MAX, seconds / 4)
            await self.drive(bounded(work, limit, 1, MOST), min(connections, 2))
        least = max(min(least, most), min(connections, most))
        async with self.costs() as cost:
            outcome = await self.drive(bounded(work, seconds, least, most), connections)
        measured = self.measurement(what, connections, outcome, cost, refusable)
        measured = replace(measured, note=note, items=items, versus=versus)
        self.shown(measured)
        return measured, outcome

    @asynccontextmanager
    async def costs(self) -> AsyncIterator["Cost"]:
        """Add up what is spent inside: by the service, its database, this process, and others."""
        cost = Cost(load_before=os.getloadavg()[0])
        before, started = self._spent(), Moment.now()
        yield cost
        after, ended = self._spent(), Moment.now()
        cost.server, cost.database, own = (b - a for a, b in zip(before, after, strict=True))
        available = (ended.at - started.at) * (os.cpu_count() or 1)
        ours = cost.server + cost.database + own
        cost.steal = (ended.steal - started.steal) / available
        cost.others = max(0.0, ended.busy - started.busy - ours) / available
        cost.memory = self.target.memory_bytes()

    def _spent(self) -> tuple[float, float, float]:
        times = os.times()
        return (*self.target.processor_seconds(), times.user + times.system)

    def measurement(
        self, what: str, connections: int, outcome: Outcome, cost: "Cost", refusable: bool = False
    ) -> Measurement:
        """Turn what happened into a line."""
        operations = len(outcome.seconds)
        ordered = sorted(outcome.seconds) or [0.0]
        refused = outcome.statuses[409] if refusable else 0
        bad = sum(count for status, count in outcome.statuses.items() if status >= 300)
        each = 1_000 / max(operations, 1)
        return Measurement(
            fleet=self.fleet.name,
            what=what,
            target=self.target.name,
            peer=self.target.peer,
            connections=connections,
            operations=operations,
            failed=bad - refused,
            refused=refused,
            rate=(operations - bad) / max(outcome.elapsed, sys.float_info.epsilon),
            p50=1_000 * ordered[len(ordered) // 2],
            p99=1_000 * ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
            server_cpu=cost.server * each,
            database_cpu=cost.database * each,
            server_mb=cost.memory[0] / 1e6,
            database_mb=cost.memory[1] / 1e6,
            answer_bytes=outcome.received // max(operations, 1),
            load_before=cost.load_before,
            steal=cost.steal,
            others=cost.others,
            complaint=outcome.sample.decode(errors="replace")[:2_000] if bad > refused else "",
        )

    def check(self, what: str, kept: bool, told: str) -> None:
        """Show whether something held."""
        target = self.target
        self.shown(Check(self.fleet.name, what, target.name, target.peer, kept, told))


@dataclass
class Cost:
    """What a line has cost, filled when it is over: seconds, shares, bytes."""

    load_before: float
    server: float = 0.0
    database: float = 0.0
    steal: float = 0.0
    others: float = 0.0
    memory: tuple[int, int] = (0, 0)
