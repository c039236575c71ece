"""The plot of a pool's past: its axis has the times that a clock has marks for."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from moorage.faces.dashboard.plots import LEFT, RIGHT, TIMES_MAX, WIDTH, plot_of
from moorage.wire.pools.past import HistoryPoint

START = datetime(2026, 11, 29, 14, 2, 13, 500_000, UTC)
POINTS = 200


def drawn(covered: float, start: datetime = START) -> list[tuple[float, datetime]]:
    """Return the times of the plot of this many seconds."""
    step = covered / POINTS
    points = [
        HistoryPoint(
            at=start + timedelta(seconds=number * step),
            occupied_low=0,
            occupied_high=1,
            waiting=0,
            granted=0,
        )
        for number in range(POINTS)
    ]
    return plot_of(points, step, 1).times


@pytest.mark.parametrize(
    ("covered", "between"),
    [(3_600, 900), (3_660, 900), (1_800, 300), (21_600, 3_600), (86_400, 14_400), (40, 15)],
)
def test_times_are_round(covered: float, between: int) -> None:
    """Each is a multiple of the same number of minutes or hours, at its own place."""
    times = drawn(covered)
    assert 2 <= len(times) <= TIMES_MAX
    for place, at in times:
        assert at.timestamp() % between == 0
        share = (at - START).total_seconds() / covered
        assert place == pytest.approx(LEFT + share * (WIDTH - LEFT - RIGHT), abs=0.1)
    assert len({second - first for (_, first), (_, second) in pairwise(times)}) == 1


def test_a_time_across_midnight_is_round() -> None:
    """Days begin at midnight, also within a plot."""
    times = drawn(21_600, datetime(2026, 11, 29, 21, 30, tzinfo=UTC))
    assert [at.hour for _, at in times] == [22, 23, 0, 1, 2, 3]


@pytest.mark.parametrize("covered", [0, 0.001, 1, 59, 600_000])
def test_any_past_can_be_drawn(covered: float) -> None:
    """Also one that is shorter than a second, or longer than the service keeps."""
    assert len(drawn(covered)) <= TIMES_MAX
