"""`python -m tests.conformance`: OpenStack Placement's own functional suite against Moorage.

Every file of the suite runs, in its order, over HTTP against a real `moorage serve` process. The
last line is `conformance: N passed, N failed`; the exit code is 0 only if exactly the expected
number passed, so that a suite that lost tests is no success either. With `--agents` every provider
has an agent; a file must also fail when these offer nothing.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from tests.conformance.suite import FILES, bind, run_file
from tests.support.agents.proxy import OFFERS, Proxy, empty_handed, proved, proxies
from tests.support.suites import Outcome, complete, counts, print_line, processes, report, servers

EXPECTED_FILES = 79
EXPECTED_TESTS = 1316
WITNESS = "allocations.yaml"
"""A file whose tests place something: it fails when nothing is offered."""


def run(files: list[str], urls: list[str]) -> list[Outcome]:
    """Run the files, each on whichever server is free next; print as they end."""
    outcomes = []
    with processes(urls, bind) as pool:
        for outcome in pool.map(run_file, files):
            print_line(f"{outcome.name}: {outcome.passed} passed, {len(outcome.failures)} failed")
            report(outcome)
            outcomes.append(outcome)
    return outcomes


def agents_control(urls: list[str], agents: list[Proxy]) -> bool:
    """Run a file that passed once more while all agents offer nothing: does it fail now?"""
    if not agents:
        return True
    with empty_handed(agents), processes(urls, bind) as pool:
        outcome = pool.submit(run_file, WITNESS).result()
    verdict = "fails, as it must," if outcome.failures else "DOES NOT FAIL"
    print_line(f"control: {WITNESS} {verdict} when agents offer nothing")
    return bool(outcome.failures)


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
    parser.add_argument("--agents", choices=OFFERS, help="what an agent of each provider offers")
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
        with running as direct, proxies(direct, asked.agents) as agents:
            urls = [one.url for one in agents] or direct
            outcomes = run(files, urls)
            good = proved(agents) and (bool(asked.files) or agents_control(urls, agents))
    passed, failed = counts(outcomes)
    variant = f", agents offer {asked.agents}" if asked.agents else ""
    print_line(f"conformance{variant}: {passed} passed, {failed} failed")
    expected = None if asked.files else EXPECTED_TESTS
    return 0 if complete(outcomes, expected) and good else 1


if __name__ == "__main__":
    sys.exit(main())
