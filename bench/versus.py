"""Compare this version with another one, by measuring both in turns.

The speed of a shared machine varies: it may drop to a third for an hour, and a comparison with an
earlier run is then meaningless. Here both versions serve the same fleet at the same time, and get
short bursts of the same requests in turn. Each line shows the median of the ratios of neighbouring
bursts; above 1, this version is faster. Some of the speed of a process depends on chance at its
start (memory layout, order of sets): two processes of the same version differed by 14 %. Therefore
both servers are restarted several times, and the range of the medians of the starts is shown, too.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import uvloop

from bench import admission, fleet, questions
from bench.fleet import Fleet
from bench.measure import require_success
from bench.scenarios import LOADING_CONNECTIONS
from bench.target import ROOT, Moorage, Storage
from bench.wire import Work, bounded, drive
from tests.support.cluster import Cluster

BURST_SECONDS = 0.4
TINY_SECONDS = 0.02
LEAST = 3
FLEETS = (Fleet("flat", 15_000), Fleet("nested", 1_000), Fleet("slots", 1), Fleet("ports", 40))
SMALL_FLEETS = (Fleet("flat", 20), Fleet("nested", 5), Fleet("slots", 1), Fleet("ports", 2))


@dataclass(frozen=True)
class Question:
    """One line of the table. `make` returns its requests from the first on, for each server."""

    name: str
    connections: int
    make: Callable[[Fleet, Iterator[int]], Iterator[Work]]


@dataclass(frozen=True)
class Burst:
    """Processor time of the server per operation and median latency, in milliseconds."""

    cpu: float
    p50: float


def questions_of(shape: str) -> list[Question]:
    """Return the lines for a fleet of this shape."""
    if shape == "slots":
        return [Question("candidates 8x8 limit=10", 1, lambda *_: questions.slot_questions(10))]
    if shape == "ports":
        return [Question("candidates 3 of 12 ports", 1, lambda *_: questions.port_questions(1000))]
    if shape == "nested":
        return list(starmap(_candidates, questions.nested_lines()))
    return [
        *starmap(_candidates, questions.flat_lines()),
        Question("claims, disjoint hosts", 1, lambda flat, n: questions.disjoint_claims(n, flat)),
        Question("claims, disjoint hosts", 64, lambda flat, n: questions.disjoint_claims(n, flat)),
        Question("claims, one host", 64, lambda _, n: questions.contended_claims(n)),
        Question("grant and release", 1, lambda _, n: admission.grants(n)),
        Question("grant and release", 64, lambda _, n: admission.grants(n)),
        Question("schedule loop", 8, lambda _, n: questions.schedules(n)),
        Question("refresh node by node", 1, lambda flat, _: questions.refreshes(flat, flat.size)),
    ]


def _candidates(name: str, connections: int, make: Callable[[], Iterator[Work]]) -> Question:
    return Question(name, connections, lambda *_: make())


async def load(target: Moorage, hosts: Fleet) -> None:
    """Load a fleet over HTTP. Raises Unusable."""
    if hosts.shape == "flat":
        require_success(await drive(target.urls, map(fleet.loading, fleet.special_hosts()), 1))
        require_success(await drive(target.urls, iter([admission.grant_pool()]), 1))
    require_success(
        await drive(target.urls, map(fleet.loading, hosts.hosts()), LOADING_CONNECTIONS)
    )


async def burst(target: Moorage, work: Iterator[Work], connections: int, seconds: float) -> Burst:
    """Measure one short burst of requests. Raises Unusable."""
    before = sum(target.processor_seconds())
    asked = bounded(work, seconds, LEAST, sys.maxsize)
    outcome = await drive(target.urls, asked, connections)
    require_success(outcome)
    spent = sum(target.processor_seconds()) - before
    each = 1_000 / len(outcome.seconds)
    return Burst(spent * each, 1_000 * statistics.median(outcome.seconds))


@dataclass(frozen=True)
class Effort:
    """The duration of a burst, the pairs of bursts per line and start, and the number of starts."""

    seconds: float
    rounds: int
    starts: int


@dataclass
class Side:
    """A server of one version; `numbers` yields its consumers, which lines must not share."""

    target: Moorage
    numbers: Iterator[int]


Pairs = list[tuple[Burst, Burst]]
"""Neighbouring bursts of one start: of this version, and of the other."""


async def measure(question: Question, hosts: Fleet, sides: list[Side], effort: Effort) -> Pairs:
    """Measure both versions in turns. Raises Unusable."""
    works = [question.make(hosts, side.numbers) for side in sides]
    pairs: Pairs = []
    for number in range(effort.rounds + 1):
        found: dict[int, Burst] = {}
        for at in (0, 1) if number % 2 else (1, 0):
            found[at] = await burst(
                sides[at].target, works[at], question.connections, effort.seconds
            )
        pairs.append((found[0], found[1]))
    del pairs[0]  # the warm-up
    return pairs


def times(pairs: Pairs) -> float:
    """Return how many times as fast this version is, by the latencies of neighbouring bursts."""
    return statistics.median(other.p50 / own.p50 for own, other in pairs)


def comparison_line(question: Question, hosts: Fleet, starts: list[Pairs]) -> str:
    """Return one line: the figures of both versions, the range of the ratios, and their median."""
    ours, theirs = zip(*itertools.chain(*starts), strict=True)
    shown = [statistics.median(one.p50 for one in side) for side in (ours, theirs)]
    cpu = [statistics.median(one.cpu for one in side) for side in (ours, theirs)]
    each = [times(pairs) for pairs in starts]
    return (
        f"{hosts.name:<14} {question.name:<36} {question.connections:>5} {shown[0]:>9.3f} "
        f"{shown[1]:>9.3f} {cpu[0]:>9.3f} {cpu[1]:>9.3f} {min(each):>6.2f} {max(each):>6.2f} "
        f"{times(list(itertools.chain(*starts))):>6.2f}"
    )


async def one_fleet(hosts: Fleet, sides: list[Side], effort: Effort) -> None:
    """Compare both versions on one fleet and print its lines."""
    questions = questions_of(hosts.shape)
    found: list[list[Pairs]] = [[] for _ in questions]
    for start in range(effort.starts):
        with sides[0].target, sides[1].target:
            if start == 0:
                for side in sides:
                    await load(side.target, hosts)
            for question, starts in zip(questions, found, strict=True):
                starts.append(await measure(question, hosts, sides, effort))
    for question, starts in zip(questions, found, strict=True):
        print(comparison_line(question, hosts, starts), flush=True)


async def compare_all(
    other: Path, fleets: tuple[Fleet, ...], effort: Effort, directory: Path, cluster: Cluster | None
) -> None:
    """Compare both versions on each fleet, one after another."""
    for number, hosts in enumerate(fleets):
        sides = []
        for name, source in (("ours", ROOT), ("theirs", other)):
            storage = Storage(directory, f"{name}{number}", cluster)
            if cluster is not None:
                cluster.create(storage.name)
            sides.append(Side(Moorage(storage, source=source), itertools.count(1)))
        await one_fleet(hosts, sides, effort)


@contextmanager
def database(engine: str, directory: Path) -> Iterator[Cluster | None]:
    """Start a PostgreSQL that syncs its commits, unless the engine is SQLite. Raises NoPostgres."""
    if engine == "sqlite":
        yield None
        return
    with Cluster(directory / "cluster", durable=True) as cluster:
        yield cluster


def main() -> int:
    """Compare two versions and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=4, help="pairs of bursts per start")
    parser.add_argument("--starts", type=int, default=3, help="number of starts of both servers")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--tiny", action="store_true", help="only check that everything works")
    asked = parser.parse_args()
    if not (asked.other / "src" / "moorage").is_dir():
        parser.error(f"{asked.other} is not a checkout of Moorage: it has no src/moorage")
    print(
        f"{'fleet':<14} {'line':<36} {'conns':>5} {'p50 ms':>9} {'other':>9} {'CPU ms':>9} "
        f"{'other':>9} {'min':>6} {'max':>6} {'ratio':>6}"
    )
    fleets: tuple[Fleet, ...] = SMALL_FLEETS if asked.tiny else FLEETS
    seconds = TINY_SECONDS if asked.tiny else BURST_SECONDS
    effort = Effort(seconds, asked.rounds, asked.starts)
    # On PostgreSQL only writes use the database, and the flat fleet has all kinds of them.
    fleets = fleets if asked.engine == "sqlite" else fleets[:1]
    with tempfile.TemporaryDirectory(prefix="moorage-versus-") as place:
        directory = Path(place)
        directory.chmod(0o711)  # a cluster started by root runs as another user
        with database(asked.engine, directory) as cluster:
            work = compare_all(asked.other.resolve(), fleets, effort, directory, cluster)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
