"""Runs another project's test suite against real servers, in several processes.

Standard library only: the environments of those projects use it. Everything that is not a pass
counts as a failure: an error, a skip, an expected failure.
"""

import contextlib
import multiprocessing
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from tests.e2e.support.server import serve


@dataclass
class Outcome:
    """The result of one unit of a suite: the number of passes, and the reason of each failure."""

    name: str
    passed: int = 0
    failures: dict[str, str] = field(default_factory=dict)


class Tally(unittest.TestResult):
    """Collects an outcome; everything but a success is a failure with its text.

    `name` returns the name under which a failed test is reported.
    """

    def __init__(
        self, outcome: Outcome, name: Callable[[unittest.TestCase], str] = unittest.TestCase.id
    ) -> None:
        super().__init__()
        self.outcome = outcome
        self.name = name

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.outcome.passed += 1

    def _failed(self, test: unittest.TestCase, text: str) -> None:
        # After a broken fixture gabbi reports its first test twice: as an error and as skipped.
        self.outcome.failures.setdefault(self.name(test), text)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - as above
        super().addFailure(test, err)
        self._failed(test, self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - as above
        super().addError(test, err)
        self._failed(test, self.errors[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - as above
        self._failed(test, f"skipped: {reason}")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - as above
        self._failed(test, "failed as the suite expects: not a pass")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - as above
        self._failed(test, "passed where the suite expects a failure")


def print_line(text: str) -> None:
    """Write a line to standard output and flush it, since the output may be a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def report(outcome: Outcome) -> None:
    """Print every failure of an outcome with its reason."""
    for test, reason in outcome.failures.items():
        print_line(f"FAILED {test}\n{reason.rstrip()}")


def counts(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Return how many tests passed and how many failed."""
    return (
        sum(outcome.passed for outcome in outcomes),
        sum(len(outcome.failures) for outcome in outcomes),
    )


def complete(outcomes: Sequence[Outcome], expected: int | None) -> bool:
    """Return whether everything passed and nothing is missing.

    `expected` is the exact number of tests; None: a selection was requested, any number above zero.
    """
    passed, failed = counts(outcomes)
    return failed == 0 and (passed == expected if expected is not None else passed > 0)


@contextlib.contextmanager
def servers(moorage: str, databases: Sequence[str | Path]) -> Iterator[list[str]]:
    """Start a server with a test-only reset on each empty database; yield their addresses."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                serve(database, "--auth", "noauth2", "--testing", moorage=[moorage])
            ).url
            for database in databases
        ]


def processes(urls: Sequence[str], bind: "Callable[[Queue[str]], None]") -> ProcessPoolExecutor:
    """Start a process per server; `bind` runs first in each and takes an address from the queue."""
    spawn = multiprocessing.get_context("spawn")
    free: Queue[str] = spawn.Queue()
    for url in urls:
        free.put(url)
    return ProcessPoolExecutor(len(urls), spawn, bind, (free,))
