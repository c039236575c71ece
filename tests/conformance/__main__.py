"""`python -m tests.conformance`: OpenStack Placement's own functional suite against Moorage.

Every file of the suite runs, in its order, over HTTP against a real `moorage serve` process. The
last line is `conformance: N passed, N failed`; the exit code is 0 only if exactly the expected
number passed, so that a suite that lost tests is no success either.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from tests.conformance.suite import FILES, bind, run_file
from tests.support.suites import Outcome, complete, counts, print_line, processes, report, servers

EXPECTED_FILES = 79
EXPECTED_TESTS = 1316


def run(files: list[str], urls: list[str]) -> list[Outcome]:
    """Run the files, each on whichever server is free next; print as they end."""
    outcomes = []
    with processes(urls, bind) as pool:
        for outcome in pool.map(run_file, files):
            print_line(f"{outcome.name}: {outcome.passed} passed, {len(outcome.failures)} failed")
            report(outcome)
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
        print_line(f"{len(files)} files instead of {EXPECTED_FILES}: not the pinned suite")
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
    passed, failed = counts(outcomes)
    print_line(f"conformance: {passed} passed, {failed} failed")
    return 0 if complete(outcomes, None if asked.files else EXPECTED_TESTS) else 1


if __name__ == "__main__":
    sys.exit(main())
