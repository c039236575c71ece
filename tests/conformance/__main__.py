"""`python -m tests.conformance`: OpenStack Placement's own functional suite against Moorage.

Every file of the suite runs, in its order, over HTTP against a real `moorage serve` process. The
last line is `conformance: N passed, N failed`; the exit code is 0 only if exactly the expected
number passed, so that a suite that lost tests is no success either. With `--agents` every provider
has an agent; a file must also fail when these offer nothing. With `--imported` only files run whose
fixtures fill the ledger: they fill the original's, and an import moves it; files must also fail if
it loses something.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.conformance.imported import LOSSES, fills
from tests.conformance.suite import FILES, bind, run_file
from tests.support.agents.proxy import OFFERS, Proxy, empty_handed, proved, proxies
from tests.support.suites import Outcome, complete, counts, print_line, processes, report, servers

EXPECTED_FILES = 79
EXPECTED_TESTS = 1316
IMPORTED_FILES = 20
IMPORTED_TESTS = 322
WITNESS = "allocations.yaml"
"""A file whose tests place something: it fails when nothing is offered."""


def run(files: list[str], urls: list[str], importing: str | None) -> list[Outcome]:
    """Run the files, each on whichever server is free next; print as they end."""
    outcomes = []
    with processes(urls, partial(bind, importing)) as pool:
        for outcome in pool.map(run_file, files):
            print_line(f"{outcome.name}: {outcome.passed} passed, {len(outcome.failures)} failed")
            report(outcome)
            outcomes.append(outcome)
    return outcomes


def agents_control(urls: list[str], agents: list[Proxy]) -> bool:
    """Run a file that passed once more while all agents offer nothing: does it fail now?"""
    if not agents:
        return True
    with empty_handed(agents), processes(urls, partial(bind, None)) as pool:
        outcome = pool.submit(run_file, WITNESS).result()
    verdict = "fails, as it must," if outcome.failures else "DOES NOT FAIL"
    print_line(f"control: {WITNESS} {verdict} when agents offer nothing")
    return bool(outcome.failures)


def losses_control(urls: list[str], importing: str) -> bool:
    """Run files once more, each after an import that has lost something: do they fail now?"""
    found = []
    with processes(urls, partial(bind, importing)) as pool:
        files = [file for file, _, _ in LOSSES.values()]
        for loss, outcome in zip(LOSSES, pool.map(run_file, files, LOSSES), strict=True):
            # Where nothing passes, there was no import.
            found.append(bool(outcome.failures) and outcome.passed > 0)
            verdict = "fails, as it must," if found[-1] else "DOES NOT FAIL AS IT MUST"
            print_line(f"control: {outcome.name} {verdict} when {loss} is lost")
    return all(found)


def controls(urls: list[str], agents: list[Proxy], importing: str | None) -> bool:
    """Return whether what must fail does fail."""
    return agents_control(urls, agents) and (importing is None or losses_control(urls, importing))


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
    parser.add_argument("--imported", action="store_true", help="import what the fixtures make")
    parser.add_argument("files", nargs="*", help="only these files of the suite")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for and say how it went."""
    asked = arguments()
    every = sorted(FILES.glob("*.yaml"))
    files = asked.files or [one.name for one in every if not asked.imported or fills(one)]
    count = IMPORTED_FILES if asked.imported else EXPECTED_FILES
    if not asked.files and len(files) != count:
        print_line(f"{len(files)} files instead of {count}: not the pinned suite")
        return 1
    importing = asked.moorage if asked.imported else None
    with tempfile.TemporaryDirectory() as folder:
        databases = [Path(folder) / f"{n}.db" for n in range(min(asked.servers, len(files)))]
        running = (
            contextlib.nullcontext(asked.url)
            if asked.url
            else servers(asked.moorage, [asked.database] if asked.database else databases)
        )
        with running as direct, proxies(direct, asked.agents) as agents:
            urls = [one.url for one in agents] or direct
            outcomes = run(files, urls, importing)
            good = proved(agents) and (bool(asked.files) or controls(urls, agents, importing))
    passed, failed = counts(outcomes)
    variant = f", agents offer {asked.agents}" if asked.agents else ""
    variant += ", imported" if asked.imported else ""
    print_line(f"conformance{variant}: {passed} passed, {failed} failed")
    tests = IMPORTED_TESTS if asked.imported else EXPECTED_TESTS
    return 0 if complete(outcomes, None if asked.files else tests) and good else 1


if __name__ == "__main__":
    sys.exit(main())
