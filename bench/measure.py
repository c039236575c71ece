"""Measures one line: sends its requests, and computes latencies and costs."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from bench.fleet import Fleet
from bench.machine import Moment
from bench.target import Target, Unusable
from bench.wire import Answer, Outcome, Work, ask, bounded, drive

WARM_UP_SECONDS_MAX = 0.3
LEAST = 5
"""The least number of operations of a line, however long they take."""
MOST = 10**9
FOREVER = 3_600.0
"""The duration of a line that ends with its work."""


@dataclass(frozen=True)
class Measurement:
    """One line of the report. Times are in milliseconds; processor times per operation.

    `rate` counts successful operations. `others` is the share of all processors not used by
    the service, its database or the load generator; `steal` is the share of other virtual machines.
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
    """The items that one operation processes, for the comparison."""
    versus: str = ""
    """The line of the original to compare with, if its name differs."""
    complaint: str = ""


@dataclass(frozen=True)
class Check:
    """A condition that must hold at any speed; `kept` tells whether it did."""

    fleet: str
    what: str
    target: str
    peer: bool
    kept: bool
    told: str


@dataclass(frozen=True)
class Options:
    """The duration of each line, and the sizes of the special ones."""

    seconds: float = 1.2
    loading_seconds: float = 5.0
    """How long the original may load a fleet over HTTP; the rest is written by SQL."""
    connections: tuple[int, ...] = (1, 8, 64)
    races: int = 60
    reported: int = 3_100


@dataclass
class Bench:
    """Measures one service with one fleet."""

    target: Target
    fleet: Fleet
    options: Options
    show: Callable[[Measurement | Check], None]
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers for new consumers."""
    empty_bytes: int = 0
    """Memory of the service before the fleet is loaded."""

    async def drive(self, work: Iterator[Work], connections: int) -> Outcome:
        """Send requests that are not measured."""
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
            what: the name of the line.
            work: its operations: as many as start in `seconds`, within `least` and `most`.
            connections: the number of concurrent operations.
            least: the least number of operations, however long they take.
            most: the largest number of operations.
            seconds: the duration; by default that of the options.
            warm: whether to start with operations that are not measured.
            refusable: whether 409 is an expected answer, not a failure.
            note: a remark for the report.
            items: the items that one operation processes.
            versus: the line of the original to compare with, if its name differs.
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
        self.show(measured)
        return measured, outcome

    @asynccontextmanager
    async def costs(self) -> AsyncIterator["Cost"]:
        """Measure what the service, its database, this process and others use meanwhile."""
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
        """Make a line of what was measured."""
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
        """Show the result of a check."""
        target = self.target
        self.show(Check(self.fleet.name, what, target.name, target.peer, kept, told))


def require_success(outcome: Outcome) -> None:
    """Raise Unusable if a request was refused."""
    if any(status >= 300 for status in outcome.statuses):
        raise Unusable(f"refused: {outcome.statuses}, {outcome.sample!r}")


@dataclass
class Cost:
    """What a line has cost, in seconds, shares and bytes; set when the context is left."""

    load_before: float
    server: float = 0.0
    database: float = 0.0
    steal: float = 0.0
    others: float = 0.0
    memory: tuple[int, int] = (0, 0)
