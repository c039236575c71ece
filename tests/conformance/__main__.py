"""`python -m tests.conformance`: OpenStack Placement's own functional suite against Moorage.

Every file of the suite runs, in its order, over HTTP against a real `moorage serve` process. The
last line is `conformance: N passed, N failed`; the exit code is 0 only if exactly the expected
number passed, so that a suite that lost tests is no success either.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.queues import Queue
from pathlib import Path

from tests.conformance.suite import FILES, Outcome, bind, run_file
from tests.e2e.server import serve

EXPECTED_FILES = 79
EXPECTED_TESTS = 1316


def say(text: str) -> None:
    """Write to standard output at once: the caller may be a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def servers(moorage: str, databases: Sequence[str | Path]) -> Iterator[list[str]]:
    """Start a server on each database, all of them empty; yield their addresses."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                serve(database, "--auth", "noauth2", "--testing", moorage=[moorage])
            ).url
            for database in databases
        ]


def run(files: list[str], urls: list[str]) -> list[Outcome]:
    """Run the files, each on whichever server is free next; print as they end."""
    spawn = multiprocessing.get_context("spawn")
    free: Queue[str] = spawn.Queue()
    for url in urls:
        free.put(url)
    outcomes = []
    with ProcessPoolExecutor(len(urls), spawn, bind, (free,)) as pool:
        for outcome in pool.map(run_file, files):
            say(f"{outcome.file}: {outcome.passed} passed, {len(outcome.failures)} failed")
            for test, reason in outcome.failures.items():
                say(f"FAILED {test}\n{reason.rstrip()}")
            outcomes.append(outcome)
    return outcomes


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--moorage", default="moorage", help="the command to test")
    parser.add_argument("--servers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--database",
        metavar="URL",
        help="of one server, instead of a file for each; everything in it is wiped",
    )
    parser.add_argument("--url", action="append", help="a server that is already there")
    parser.add_argument("files", nargs="*", help="only these files of the suite")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for and say how it went."""
    asked = arguments()
    files = asked.files or sorted(path.name for path in FILES.glob("*.yaml"))
    if not asked.files and len(files) != EXPECTED_FILES:
        say(f"{len(files)} files instead of {EXPECTED_FILES}: not the pinned suite")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        count = min(asked.servers, len(files))
        databases = [Path(folder) / f"{n}.db" for n in range(count)]
        running = (
            contextlib.nullcontext(asked.url)
            if asked.url
            else servers(asked.moorage, [asked.database] if asked.database else databases)
        )
        with running as urls:
            outcomes = run(files, urls)
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.failures) for outcome in outcomes)
    say(f"conformance: {passed} passed, {failed} failed")
    return 0 if failed == 0 and (asked.files or passed == EXPECTED_TESTS) else 1


if __name__ == "__main__":
    sys.exit(main())
