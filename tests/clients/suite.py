"""The functional tests of real clients: where they are, how many there are, how one is run.

The test files come from the installed wheels and are not changed; `stand_in` is all they get in
place of Placement's own server.
"""

import copy
import importlib
import os
import pkgutil
import sys
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path

from tests.clients import stand_in
from tests.support.suites import Outcome, Tally


@dataclass(frozen=True)
class Suite:
    """One client's tests.

    `package` is a module of tests, or a package of such modules; `expected` the exact number of
    tests; `witness` a test that depends on the answers that the control spoils.
    """

    package: str
    expected: int
    witness: str


SUITES = {
    "osc-placement": Suite(
        package="osc_placement.tests.functional",
        expected=160,
        witness="test_usage.TestUsage.test_usage_show",
    ),
    "nova": Suite(
        package="nova.tests.functional.test_report_client",
        expected=18,
        witness="SchedulerReportClientTests.test_client_report_smoke",
    ),
}

VARIABLES = {
    # What a test writes is kept for its failure, as the projects' own tox.ini has it.
    "OS_STDOUT_CAPTURE": "1",
    "OS_STDERR_CAPTURE": "1",
    "OS_LOG_CAPTURE": "1",
    # Seconds until a test that hangs is ended as failed.
    "OS_TEST_TIMEOUT": "120",
    # Nova's threading mode: eventlet, the other, is deprecated and would patch this process, too.
    "OS_NOVA_DISABLE_EVENTLET_PATCHING": "true",
}
"""The environment of the tests. Their commands are found first in the environment they run in."""

_tests: dict[str, unittest.TestCase] = {}
"""The tests of this process by name. The stand-in is global: one suite, one server per process."""


def bind(package: str, urls: "Queue[str]") -> None:
    """Give this process a server of its own, taken from the queue, and load the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.update(VARIABLES, PATH=path)
    stand_in.install(urls.get())
    for module in _modules(package):
        for test in _flat(unittest.defaultTestLoader.loadTestsFromName(module)):
            _tests[test.id().removeprefix(f"{package}.")] = test


def names() -> list[str]:
    """Return the names of all tests."""
    return list(_tests)


def run_test(name: str, through: str | None = None) -> Outcome:
    """Run one test on this process's server, or through another address."""
    before = stand_in.Target.url
    stand_in.Target.url = through or before
    try:
        outcome = Outcome(name)
        # A copy, because nova's tests take themselves apart when they end.
        copy.copy(_tests[name]).run(Tally(outcome))
        return outcome
    finally:
        stand_in.Target.url = before


def _modules(package: str) -> list[str]:
    found = importlib.import_module(package)
    if not hasattr(found, "__path__"):
        return [package]
    inside = [f"{package}.{module.name}" for module in pkgutil.iter_modules(found.__path__)]
    return [module for module in inside if module.rpartition(".")[2].startswith("test_")]


def _flat(tests: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test
