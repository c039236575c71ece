"""`python -m tests.compare`: sends the same requests to the original and to Moorage.

The first difference that is not deliberate ends the run: it is shown with the smallest sequence of
requests that still has it, and the exit code is 1. With `--survey` the run continues, and shows how
often each kind of difference occurred, with its first example. The last line of the output has the
command that repeats the run.
"""

import argparse
import contextlib
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.compare.runs import Task, say
from tests.compare.sides import Absent
from tests.compare.workers import compared
from tests.support import cluster
from tests.support.agents.proxy import OFFERS

SEEDS = 10**9
ENGINES = ("sqlite", "postgresql")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seed", type=int, help="repeat the run with this seed (default: a new seed)"
    )
    parser.add_argument(
        "--requests", type=int, default=1_000, help="random requests in all (default: %(default)s)"
    )
    parser.add_argument(
        "--length",
        type=int,
        default=200,
        help="random requests in a sequence (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument(
        "--engines",
        default="sqlite",
        help="Moorage's database: sqlite (default), postgresql, or sqlite,postgresql; with both, "
        "every request goes to three servers",
    )
    parser.add_argument(
        "--survey", action="store_true", help="count all differences instead of ending at the first"
    )
    parser.add_argument("--agents", choices=OFFERS, help="what an agent of each provider offers")
    parser.add_argument(
        "--itself",
        action="store_true",
        help="compare the original with itself under another hash seed",
    )
    asked = parser.parse_args()
    asked.engines = [] if asked.itself else asked.engines.split(",")
    if not set(asked.engines) <= set(ENGINES):
        parser.error(f"--engines takes {' and '.join(ENGINES)}")
    if asked.seed is None:
        asked.seed = random.SystemRandom().randrange(SEEDS)
    return asked


def repeating(asked: argparse.Namespace) -> str:
    """Return all options that repeat this run, because `make compare` has different defaults."""
    options = [f"--{name} {getattr(asked, name)}" for name in ("seed", "requests", "length")]
    options.append(f"--workers {asked.workers}")
    options.append(f"--engines {','.join(asked.engines)}" if asked.engines else "--itself")
    options += [f"--agents {asked.agents}"] * bool(asked.agents)
    return " ".join([*options, *["--survey"] * asked.survey])


@contextlib.contextmanager
def tasks(asked: argparse.Namespace) -> Iterator[list[Task]]:
    """Divide the work, and create databases of PostgreSQL in a cluster of this run."""
    with contextlib.ExitStack() as stack:
        postgres = None
        if "postgresql" in asked.engines:
            postgres = stack.enter_context(cluster.Cluster())
        divided = []
        for worker in range(asked.workers):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            databases: dict[str, str | Path] = {}
            if "sqlite" in asked.engines:
                databases["sqlite"] = folder / "moorage.db"
            if postgres is not None:
                databases["postgresql"] = postgres.create(f"compare_{worker}")
            requests = asked.requests // asked.workers
            seed = f"{asked.seed}/{worker}"
            options = (asked.survey, asked.agents)
            divided.append(Task(seed, requests, asked.length, folder, databases, *options))
        yield divided


def main() -> int:
    """Run the comparison; return the exit code."""
    asked = arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with tasks(asked) as divided:
            totals = compared(divided)
    except (Absent, cluster.NoPostgres) as problem:
        say(f"compare: {problem}")
        return 2
    say(totals.text())
    say(f'again: make compare ARGS="{repeating(asked)}"')
    return int(totals.failed)


if __name__ == "__main__":
    sys.exit(main())
