"""Wald's sequential probability ratio test: are few of the starts failing, or many?

Each outcome moves a sum, the logarithm of how much likelier all outcomes are if the failure rate is
the bad one. The test ends as soon as the sum leaves an interval, so it needs no number of outcomes
that is chosen before.
Source: A. Wald, "Sequential Tests of Statistical Hypotheses", 1945.
"""

from math import log
from typing import Literal

ERROR_RATE = 0.05
"""How often the test may call a good rate bad, and a bad rate good: alpha and beta."""

BOUND = log((1 - ERROR_RATE) / ERROR_RATE)
"""The test ends when its sum reaches this, or minus this: 2.94."""

Rate = Literal["good", "bad"]


def leaning(good: float, bad: float, ok: float, failed: float) -> float:
    """Return the sum of the test as a part of its bound: from 1 on it is bad, from -1 on good.

    Args:
        good: the failure rate that is fine, above 0.
        bad: the failure rate that is too high, above `good` and below 1.
        ok: outcomes without a failure; correlated ones count in part.
        failed: outcomes with a failure.
    """
    return (failed * log(bad / good) + ok * log((1 - bad) / (1 - good))) / BOUND


def decided(good: float, bad: float, ok: float, failed: float) -> Rate | None:
    """Return which of the two failure rates the outcomes show; None: more of them are needed."""
    lean = leaning(good, bad, ok, failed)
    if lean >= 1:
        return "bad"
    return "good" if lean <= -1 else None


def expected(good: float, bad: float) -> tuple[int, int]:
    """Return after how many outcomes the test ends on average, at the good and at the bad rate.

    Source: Wald's approximation of the average sample number, which ignores that the last outcome
    may carry the sum beyond its bound.
    """
    reached = (1 - 2 * ERROR_RATE) * BOUND
    steps = [
        abs(rate * log(bad / good) + (1 - rate) * log((1 - bad) / (1 - good)))
        for rate in (good, bad)
    ]
    return round(reached / steps[0]), round(reached / steps[1])
