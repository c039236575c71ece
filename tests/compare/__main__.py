"""`python -m tests.compare`: the same requests to the original and to Moorage, side by side.

The first difference that is not meant ends the run; its sequence is made small and shown, and the
exit code is 1. With `--survey` every kind of difference is counted instead, with its first example.
A run can be repeated: the seed, the number of workers and of requests make it what it is.
"""

import argparse
import contextlib
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests import cluster
from tests.compare.runs import Task, say
from tests.compare.sides import Absent
from tests.compare.workers import compared

SEEDS = 10**9
ENGINES = ("sqlite", "postgresql")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="repeats a run; otherwise a new one")
    parser.add_argument("--requests", type=int, default=1_000, help="random ones (%(default)s)")
    parser.add_argument("--length", type=int, default=200, help="of a sequence (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument(
        "--engines",
        default="sqlite",
        help="what Moorage keeps its ledger in: sqlite (the default), postgresql, or both with a "
        "comma between them: then every request goes to three servers",
    )
    parser.add_argument("--survey", action="store_true", help="count all, end at none")
    parser.add_argument(
        "--itself",
        action="store_true",
        help="the original beside itself, with another seed of hashes",
    )
    asked = parser.parse_args()
    asked.engines = [] if asked.itself else asked.engines.split(",")
    if not set(asked.engines) <= set(ENGINES):
        parser.error(f"--engines takes {' and '.join(ENGINES)}")
    if asked.seed is None:
        asked.seed = random.SystemRandom().randrange(SEEDS)
    return asked


@contextlib.contextmanager
def tasks(asked: argparse.Namespace) -> Iterator[list[Task]]:
    """Divide the work; databases of PostgreSQL are made here, in a cluster of this run."""
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
            divided.append(Task(seed, requests, asked.length, folder, databases, asked.survey))
        yield divided


def main() -> int:
    """Compare."""
    asked = arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with tasks(asked) as divided:
            totals = compared(divided)
    except (Absent, cluster.NoPostgres) as problem:
        say(f"compare: {problem}")
        return 2
    say(totals.text())
    options = f"--seed {asked.seed} --requests {asked.requests}"
    say(f'again: make compare ARGS="{options}"')
    return int(totals.failed)


if __name__ == "__main__":
    sys.exit(main())
