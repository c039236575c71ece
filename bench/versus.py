"""Compare this version with others, by measuring all of them in turns.

Without an argument, the others are the baselines of `bench/baselines.toml`. All versions serve the
same fleets at the same time, each in the environment of its own lock files, and get short bursts of
the same requests in turn. Ratios above 1: this version is faster, or needs less processor time.
"""

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path

import uvloop

from bench import admission, agents, baselines, fleet, goals, original, questions
from bench.baselines import NoVersion, Version
from bench.fleet import Fleet
from bench.measure import require_success
from bench.scenarios import LOADING_CONNECTIONS
from bench.target import ROOT, Moorage, Storage, Target
from bench.turns import FAILURES, Comparison, Effort, Question, Side, Start, compared, measure
from bench.wire import Work, drive
from tests.support.cluster import Cluster, NoPostgres

FLEETS = (
    *(Fleet("flat", 15_000), Fleet("nested", 1_000), Fleet("slots", 1), Fleet("ports", 40)),
    Fleet("agents", 1_000),
)
SMALL_FLEETS = (
    *(Fleet("flat", 1_000), Fleet("nested", 100), Fleet("slots", 1), Fleet("ports", 10)),
    Fleet("agents", 200),
)
TINY_FLEETS = (
    *(Fleet("flat", 20), Fleet("nested", 5), Fleet("slots", 1), Fleet("ports", 2)),
    Fleet("agents", 4),
)
FULL, QUICK, TINY = Effort(0.4, 4, 5), Effort(0.3, 3, 2), Effort(0.02, 1, 1)
REASON_MAX = 160

HEAD = (
    f"{'fleet':<14} {'line':<44} {'conns':>5} {'against':<14} {'p50 ms':>9} {'theirs':>9} "
    f"{'min':>6} {'max':>6} {'ratio':>6} {'CPU ms':>9} {'theirs':>9} {'min':>6} {'max':>6} "
    f"{'ratio':>6}"
)


def questions_of(hosts: Fleet) -> list[Question]:
    """Return the lines for a fleet."""
    pool = (admission.grant_pool(),)
    if hosts.shape == "slots":
        return [Question("candidates 8x8 limit=10", 1, lambda *_: questions.slot_questions(10))]
    if hosts.shape == "ports":
        return [Question("candidates 3 of 12 ports", 1, lambda *_: questions.port_questions(1000))]
    if hosts.shape == "nested":
        return list(starmap(_candidates, questions.nested_lines()))
    if hosts.shape == "agents":
        return [Question("sign of life", 64, lambda all_of, _: agents.beats(all_of.size))]
    return [
        *starmap(_candidates, questions.flat_lines()),
        *(
            Question("claims, disjoint hosts", connections, _claims, comparable=connections == 64)
            for connections in (1, 8, 64)
        ),
        Question("claims, one host", 64, lambda _, n: questions.contended_claims(n)),
        Question("grant and release", 1, lambda _, n: admission.grants(n), pool),
        Question("grant and release", 64, lambda _, n: admission.grants(n), pool),
        Question("schedule loop", 8, lambda _, n: questions.schedules(n)),
        Question("refresh node by node", 1, lambda flat, _: questions.refreshes(flat, flat.size)),
    ]


def _claims(flat: Fleet, numbers: Iterator[int]) -> Iterator[Work]:
    return questions.disjoint_claims(numbers, flat)


def _candidates(name: str, connections: int, make: Callable[[], Iterator[Work]]) -> Question:
    return Question(name, connections, lambda *_: make())


async def load(side: Side, hosts: Fleet) -> None:
    """Load a fleet over HTTP; into the original, by SQL. Raises Unusable, BrokenAnswer."""
    urls = side.target.urls
    if side.target.peer:
        side.target.fill(hosts)
        return
    if hosts.shape == "agents":
        group, *created = agents.creations(hosts.size)
        require_success(await drive(urls, iter([group]), 1))
        for work in (created, agents.registers(hosts.size), agents.reports(hosts.size)):
            require_success(await drive(urls, iter(work), LOADING_CONNECTIONS))
        return
    if hosts.shape == "flat":
        require_success(await drive(urls, map(fleet.loading, fleet.special_hosts()), 1))
    require_success(await drive(urls, map(fleet.loading, hosts.hosts()), LOADING_CONNECTIONS))


async def one_fleet(hosts: Fleet, sides: Sequence[Side], effort: Effort) -> list[Comparison]:
    """Compare all sides on one fleet and print its lines. Raises what the first side lacks."""
    asked = questions_of(hosts)
    found: list[list[Start]] = [[] for _ in asked]
    for number in range(effort.starts):
        with ExitStack() as running:
            for side in sides:
                await _begin(side, hosts, running, first=number == 0)
            for question, starts in zip(asked, found, strict=True):
                starts.append(await measure(question, hosts, sides, effort, first=number == 0))
    comparisons: list[Comparison] = []
    for question, starts in zip(asked, found, strict=True):
        for at, side in enumerate(sides[1:], 1):
            comparison = compared(hosts, question, starts, at, side.name)
            if comparison is not None:
                comparisons.append(comparison)
                print(comparison_line(comparison), flush=True)
    for line in left_out(hosts, sides[1:]):
        print(line, flush=True)
    return comparisons


async def _begin(side: Side, hosts: Fleet, running: ExitStack, *, first: bool) -> None:
    """Start a side, unless it failed before. Raises what the first side lacks."""
    if "" in side.lacks:
        return
    try:
        running.enter_context(side.target)
        if first:
            await load(side, hosts)
    except FAILURES as failure:
        if side.is_own:
            raise
        side.lacks[""] = str(failure)


def comparison_line(one: Comparison) -> str:
    """Return one line: the figures of both versions, the range of the starts, and their ratio."""
    ratios = [
        f"{ratio.own:>9.3f} {ratio.other:>9.3f} {min(ratio.each):>6.2f} {max(ratio.each):>6.2f} "
        f"{ratio.times:>6.2f}"
        for ratio in (one.p50, one.processor)
    ]
    return (
        f"{one.fleet.name:<14} {one.question.name:<44} {one.question.connections:>5} "
        f"{one.against:<14} {' '.join(ratios)}"
    )


def left_out(hosts: Fleet, sides: Sequence[Side]) -> Iterator[str]:
    """Return a line for each line that a side could not answer, with the reason."""
    for side in sides:
        for name, reason in side.lacks.items():
            told = " ".join(reason.split())[:REASON_MAX]
            yield f"{hosts.name:<14} {name or 'all lines':<44} {side.name} is left out: {told}"


@dataclass(frozen=True)
class Plan:
    """What is compared. `reference` creates the original; None: it is not asked."""

    versions: Sequence[Version]
    fleets: Sequence[Fleet]
    effort: Effort
    storage: Callable[[str], Storage]
    reference: Callable[[], Target] | None


async def compare_all(plan: Plan) -> list[Comparison]:
    """Compare all versions with the first on each fleet, one fleet after another."""
    found: list[Comparison] = []
    for number, hosts in enumerate(plan.fleets):
        sides = []
        for at, one in enumerate(plan.versions):
            storage = plan.storage(f"v{at}_{number}")
            target = Moorage(storage, source=one.source, python=one.python)
            sides.append(Side(one.name, target, itertools.count(1), is_own=at == 0))
        if plan.reference is not None and any(one.comparable for one in questions_of(hosts)):
            sides.append(Side(goals.ORIGINAL, plan.reference(), itertools.count(1)))
        found += await one_fleet(hosts, sides, plan.effort)
    return found


@contextmanager
def databases(directory: Path, name: str) -> Iterator[Callable[[str], Storage]]:
    """Start a PostgreSQL that syncs its commits; yield what creates databases in it.

    Raises NoPostgres.
    """
    with Cluster(directory / name, durable=True) as cluster:

        def created(database: str) -> Storage:
            cluster.create(database)
            return Storage(directory, database, cluster)

        yield created


def reference_of(
    environment: Path, directory: Path, running: ExitStack
) -> Callable[[], Target] | None:
    """Return what creates the original on PostgreSQL, or None, and print why."""
    reason = original.missing(environment)
    if reason is None:
        try:
            created = running.enter_context(databases(directory, "reference"))
            return lambda: original.Original(created("original"), environment)
        except NoPostgres as error:
            reason = str(error)
    print(f"without the original: {reason}")
    return None


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument(
        "others",
        nargs="*",
        metavar="other",
        help="a checkout, a commit or a baseline; default: all baselines",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="small fleets, few starts: a few minutes"
    )
    size.add_argument("--tiny", action="store_true", help="only check that everything works")
    parser.add_argument("--rounds", type=int, help="bursts per line and start")
    parser.add_argument("--starts", type=int, help="number of starts of all servers")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument(
        "--original",
        type=Path,
        default=ROOT / ".venv-original",
        help="the virtual environment of the original; it is asked for claims on SQLite only",
    )
    parser.add_argument(
        "--write-docs",
        type=Path,
        nargs="?",
        const=ROOT / "docs",
        metavar="FOLDER",
        help="write the table of goals to performance.md in FOLDER (default: docs)",
    )
    return parser.parse_args()


def effort_of(asked: argparse.Namespace) -> Effort:
    """Return how much is measured."""
    effort = TINY if asked.tiny else QUICK if asked.quick else FULL
    return Effort(effort.seconds, asked.rounds or effort.rounds, asked.starts or effort.starts)


def main() -> int:
    """Compare versions, and print a table and the goals; return 1 if nothing can be compared."""
    asked = arguments()
    others = asked.others or list(baselines.named())
    versions, missing = [baselines.this()], []
    for word in others:
        try:
            versions.append(baselines.version(word, postgres=asked.engine == "postgresql"))
        except NoVersion as reason:
            missing.append(f"{word} is left out: {reason}")
    load = f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} processors"
    about = f"{'; '.join(map(str, versions))}; {load}"
    print(about, *missing, sep="\n", flush=True)
    if len(versions) == 1:
        return 1
    fleets: Sequence[Fleet] = TINY_FLEETS if asked.tiny else SMALL_FLEETS if asked.quick else FLEETS
    with tempfile.TemporaryDirectory(prefix="moorage-versus-") as place, ExitStack() as running:
        directory = Path(place)
        directory.chmod(0o711)  # a cluster started by root runs as another user
        if asked.engine == "postgresql":
            # Only writes use the database, and the flat fleet has all kinds of them.
            fleets, reference = fleets[:1], None
            storage = running.enter_context(databases(directory, "cluster"))
        else:
            reference = reference_of(asked.original, directory, running)
            storage = partial(Storage, directory)
        print(HEAD, flush=True)
        plan = Plan(versions, fleets, effort_of(asked), storage, reference)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(compare_all(plan))
    table = goals.table(found)
    print(f"\n{table}")
    if asked.write_docs is not None:
        goals.write(table, about, asked.write_docs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
