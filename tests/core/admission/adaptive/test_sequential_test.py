"""The sequential test: how many outcomes it needs, and how often it is wrong."""

from math import log
from random import Random

import pytest

from moorage.core.admission.adaptive.sequential_test import BOUND, decided, expected, leaning


@pytest.mark.parametrize(
    ("good", "bad", "outcomes"),
    [(0.02, 0.08, (78, 50)), (0.02, 0.10, (52, 31)), (0.01, 0.05, (107, 64))],
)
def test_how_many_outcomes_it_needs(good: float, bad: float, outcomes: tuple[int, int]) -> None:
    """Wald's average sample numbers at the two rates, with errors of 5 %."""
    assert expected(good, bad) == outcomes


def test_the_bound_is_that_of_errors_of_five_percent() -> None:
    """The logarithm of 95 to 5, in both directions."""
    assert pytest.approx(log(19)) == BOUND


def test_how_soon_it_can_end() -> None:
    """After three failures in a row, or 47 good outcomes; not one earlier."""
    assert decided(0.02, 0.08, 0, 3) == "bad"
    assert decided(0.02, 0.08, 0, 2) is None
    assert decided(0.02, 0.08, 47, 0) == "good"
    assert decided(0.02, 0.08, 46, 0) is None
    assert leaning(0.02, 0.08, 0, 0) == 0


def played(dice: Random, rate: float) -> tuple[str, int]:
    """Run one test on starts that fail at this rate; return its decision and its outcomes."""
    ok = failed = 0
    while (found := decided(0.02, 0.08, ok, failed)) is None:
        is_failed = dice.random() < rate
        failed += is_failed
        ok += not is_failed
    return found, ok + failed


@pytest.mark.parametrize(("rate", "right"), [(0.02, "good"), (0.08, "bad")])
def test_how_often_it_is_wrong(rate: float, right: str) -> None:
    """In at most 5 % of the tests, and it needs about as many outcomes as expected."""
    dice = Random(7)
    found = [played(dice, rate) for _ in range(2_000)]
    wrong = sum(said != right for said, _ in found) / len(found)
    usual = sum(count for _, count in found) / len(found)
    needed = expected(0.02, 0.08)[right == "bad"]
    assert wrong <= 0.05
    assert 0.9 * needed <= usual <= 1.4 * needed


def test_a_share_of_failures_is_no_test() -> None:
    """The control: to look after 20 starts whether more than 5 % have failed is wrong too often."""
    dice = Random(7)
    looks = [sum(dice.random() < 0.02 for _ in range(20)) / 20 for _ in range(2_000)]
    assert sum(share >= 0.05 for share in looks) / len(looks) > 0.2
