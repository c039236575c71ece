"""`python -m tests.clients SUITE`: a real client's own functional tests against Moorage.

The tests run over HTTP against real `moorage serve` processes. Afterwards one of them runs again
through a relay that reports one amount wrongly: it must fail then, or the run proves nothing. With
`--agents` every provider has an agent, and the test must also fail when these offer nothing. The
last line is `e2e: SUITE on ENGINE: N passed, N failed in N s`; the exit code is 0 only if exactly
the expected number passed, so that a suite that lost tests is no success either.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.clients.suite import SUITES, bind, names, run_test
from tests.e2e.support.relay import Relay
from tests.support.agents.proxy import OFFERS, Proxy, empty_handed, proved, proxies
from tests.support.suites import Outcome, complete, counts, print_line, processes, report, servers

SPOILT = (b'"VCPU":2', b'"VCPU":3')
"""An amount that the control's answers report, and what they say instead; of one length."""


def run(pool: ProcessPoolExecutor, tests: list[str]) -> list[Outcome]:
    """Run the tests, each on whichever server is free next; print what fails."""
    outcomes = []
    for outcome in pool.map(run_test, tests):
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def control(pool: ProcessPoolExecutor, witness: str, url: str) -> bool:
    """Run a test that passed once more through a relay that spoils answers: does it fail now?"""
    with Relay(url) as relay:
        relay.spoil = SPOILT
        outcome = pool.submit(run_test, witness, relay.url).result()
    good = bool(outcome.failures and relay.spoilt)
    verdict = "fails, as it must," if good else "DOES NOT FAIL"
    print_line(f"control: {witness} {verdict} when answers are spoilt (amounts: {relay.spoilt})")
    return good


def agents_control(pool: ProcessPoolExecutor, witness: str, agents: list[Proxy]) -> bool:
    """Run a test that passed once more while all agents offer nothing: does it fail now?"""
    if not agents:
        return True
    with empty_handed(agents):
        outcome = pool.submit(run_test, witness).result()
    verdict = "fails, as it must," if outcome.failures else "DOES NOT FAIL"
    print_line(f"control: {witness} {verdict} when agents offer nothing")
    return bool(outcome.failures)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--moorage", default="moorage", help="the command to test")
    parser.add_argument("--servers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--database",
        metavar="URL",
        help="a PostgreSQL for one server, instead of a file for each; everything in it is wiped",
    )
    parser.add_argument("--agents", choices=OFFERS, help="what an agent of each provider offers")
    parser.add_argument("tests", nargs="*", help="only tests whose name contains one of these")
    asked = parser.parse_intermixed_args()
    if asked.database:
        asked.servers = 1  # two would wipe each other's tests
    return asked


def main() -> int:
    """Run what was asked for and say how it went."""
    asked = arguments()
    suite = SUITES[asked.suite]
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        databases = [asked.database or folder / f"{n}.db" for n in range(asked.servers)]
        urls = stack.enter_context(servers(asked.moorage, databases))
        agents = stack.enter_context(proxies(urls, asked.agents))
        urls = [one.url for one in agents] or urls
        pool = stack.enter_context(processes(urls, partial(bind, suite.package)))
        tests = pool.submit(names).result()
        if asked.tests:
            tests = [test for test in tests if any(word in test for word in asked.tests)]
        outcomes = run(pool, tests)
        good = proved(agents)
        if not asked.tests:
            good &= control(pool, suite.witness, urls[0])
            good &= agents_control(pool, suite.witness, agents)
    passed, failed = counts(outcomes)
    if not asked.tests and passed + failed != suite.expected:
        print_line(f"{passed + failed} tests instead of {suite.expected}: not the pinned suite")
    print_line(f"{passed} passed, {failed} failed")
    engine = "postgresql" if asked.database else "sqlite"
    engine += f", agents offer {asked.agents}" if asked.agents else ""
    seconds = time.monotonic() - began
    print_line(
        f"e2e: {asked.suite} on {engine}: {passed} passed, {failed} failed in {seconds:.0f} s"
    )
    expected = None if asked.tests else suite.expected
    return 0 if complete(outcomes, expected) and good else 1


if __name__ == "__main__":
    sys.exit(main())
