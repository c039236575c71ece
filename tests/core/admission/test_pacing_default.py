"""How a pool is paced that leaves it to us."""

import pytest

from moorage.core.admission.model import SECOND, Pacing, pacing_default


@pytest.mark.parametrize(
    ("limit", "hold", "interval", "burst"),
    [(50, 1200, 24, 5), (1, 60, 60, 1), (9, 9, 1, 1), (19, 38, 2, 1), (20, 40, 2, 2)],
)
def test_a_pool_with_a_hold(limit: int, hold: int, interval: int, burst: int) -> None:
    """One interval is hold/limit, and a tenth of the limit may start at once, one at least."""
    assert pacing_default(limit, hold * SECOND) == Pacing(interval * SECOND, burst)


@pytest.mark.parametrize(("limit", "hold"), [(None, 60), (0, 60), (50, None)])
def test_pools_without(limit: int | None, hold: int | None) -> None:
    """Without a limit or a hold there is nothing to tell an interval from."""
    assert pacing_default(limit, hold) is None


def test_an_interval_is_never_nothing() -> None:
    """However many units share a short hold."""
    assert pacing_default(1_000, 10) == Pacing(1, 100)
