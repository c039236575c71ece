"""Only a success counts as a pass, and a suite that has lost tests is no success."""

import unittest

import pytest

from tests.support.suites import Outcome, Tally, complete, counts


class Ends(unittest.TestCase):
    """One test for each way in which a test can end."""

    def passes(self) -> None:
        """End well."""

    def fails(self) -> None:
        self.fail("wrong")

    def breaks(self) -> None:
        raise RuntimeError("broken")

    def skips(self) -> None:
        self.skipTest("not here")

    @unittest.expectedFailure
    def fails_as_expected(self) -> None:
        self.fail("known")

    @unittest.expectedFailure
    def passes_unexpectedly(self) -> None:
        """End well although a failure is expected."""


def outcome_of(*names: str) -> Outcome:
    """Run these tests and return what the tally says."""
    outcome = Outcome("all")
    unittest.TestSuite(Ends(name) for name in names).run(Tally(outcome))
    return outcome


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fails", "AssertionError: wrong"),
        ("breaks", "RuntimeError: broken"),
        ("skips", "skipped: not here"),
        ("fails_as_expected", "not a pass"),
        ("passes_unexpectedly", "expects a failure"),
    ],
)
def test_only_success_is_a_pass(name: str, reason: str) -> None:
    """A failure, an error, a skip and an expected failure each count as failed, with the reason."""
    outcome = outcome_of("passes", name)
    assert counts([outcome]) == (1, 1)
    assert reason in outcome.failures[Ends(name).id()]
    assert not complete([outcome], 1)
    assert not complete([outcome], 2)


def test_the_exact_number_is_needed() -> None:
    """A suite with one test more or fewer than expected is no success; neither is an empty one."""
    outcomes = [outcome_of("passes"), outcome_of("passes")]
    assert complete(outcomes, 2)
    assert not complete(outcomes, 1)
    assert not complete(outcomes, 3)
    assert complete(outcomes, None)
    assert not complete([], None)
