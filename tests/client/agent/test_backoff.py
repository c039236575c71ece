"""Delays double up to a limit, are random, and honour what a server asks for."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.client.agent.backoff import RETRY_AFTER_SECONDS_MAX, Backoff


def test_delays_double_up_to_the_limit() -> None:
    """The upper bounds double; after a reset they begin again."""
    backoff = Backoff(1.0, 60.0, lambda low, high: high)
    assert [backoff.next() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff.attempts == 8
    backoff.reset()
    assert (backoff.attempts, backoff.next()) == (0, 1.0)


def test_the_limit_can_follow() -> None:
    """Another limit holds from the next delay on, but never above the first one, nor near zero."""
    backoff = Backoff(1.0, 60.0, lambda low, high: high)
    for _ in range(8):
        backoff.next()
    delays = []
    for most in (10.0, 30.0, 90.0, 0.0):
        backoff.limit(most)
        delays.append(backoff.next())
    assert delays == [10.0, 30.0, 60.0, 1.0]


@given(st.integers(0, 200), st.floats(0, 1))
def test_every_delay_is_between_zero_and_the_limit(attempts: int, share: float) -> None:
    """Full jitter: the whole range is possible, after any number of attempts."""
    backoff = Backoff(1.0, 60.0, lambda low, high: low + share * (high - low))
    delays = [backoff.next() for _ in range(attempts + 1)]
    assert all(0.0 <= delay <= 60.0 for delay in delays)
    assert all(delay == share * min(60.0, 2.0**at) for at, delay in enumerate(delays[:20]))


def test_the_usual_delays_are_random() -> None:
    """Two machines that failed together do not return together."""
    assert len({Backoff(1.0, 60.0).next() for _ in range(20)}) > 1


def test_retry_after_is_added_and_bounded() -> None:
    """A server can delay an attempt, but not silence a machine."""
    backoff = Backoff(1.0, 60.0, lambda low, high: high)
    assert backoff.next(30.0) == 31.0
    assert backoff.next(1e9) == RETRY_AFTER_SECONDS_MAX + 2.0
    assert backoff.next(-5.0) == 4.0
