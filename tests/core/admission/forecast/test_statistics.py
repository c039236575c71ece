"""Percentiles and starts per minute: the definitions that reports and simulations share."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.admission.forecast.statistics import (
    greatest,
    percentile,
    percentiles,
    starts_per_minute,
    summed,
)
from moorage.core.clock import MINUTE

STARTS = st.lists(
    st.tuples(st.integers(0, 5 * MINUTE) | st.sampled_from([0, MINUTE]), st.integers(1, 9)),
    max_size=30,
)


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_first_value_that_enough_do_not_exceed(
    values: list[int], percent: int
) -> None:
    """Like `percentile_disc` of SQL: the smallest value with enough values up to it."""
    found = percentile(sorted(values), percent)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)


def test_percentiles_of_round_numbers() -> None:
    """The percentiles of 1 to 100 are the percents; those of few values may coincide."""
    assert percentiles(range(100, 0, -1)) == (50, 90, 99)
    assert percentiles([3, 1, 2, 4]) == (2, 4, 4)
    assert percentiles([7]) == (7, 7, 7)
    assert percentiles([]) is None
    assert [percentile([1, 2, 3], percent) for percent in (0, 100)] == [1, 3]


@given(STARTS)
def test_starts_per_minute_are_those_of_the_last_60_seconds(starts: list[tuple[int, int]]) -> None:
    """The rate at a grant is the sum of the units granted in the 60 seconds up to it."""
    rates = dict(starts_per_minute(starts))
    for at, _ in starts:
        assert rates[at] == sum(n for other, n in starts if at - MINUTE < other <= at)


@given(STARTS)
def test_the_greatest_rate_is_that_of_any_60_seconds(starts: list[tuple[int, int]]) -> None:
    """The greatest rate is the maximum over all windows of 60 seconds."""
    windows = [
        sum(units for at, units in starts if begin <= at < begin + MINUTE) for begin, _ in starts
    ]
    assert greatest(starts_per_minute(starts)) == max(windows, default=0)


def test_a_minute_of_the_clock_is_no_window() -> None:
    """Starts shortly before and after a full minute count together."""
    starts = [(MINUTE - 1_000_000, 50), (MINUTE + 1_000_000, 50)]
    assert greatest(starts_per_minute(starts)) == 100


def test_changes_at_one_time_are_one_step() -> None:
    """Changes at the same time give one step, with the sum after all of them."""
    assert summed([(5, 1), (0, 2), (5, -2)]) == [(0, 2), (5, 1)]
