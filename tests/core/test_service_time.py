"""Time runs on through jumps of the wall clock, and stands still for the holders in an outage."""

from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import NOT_YET, OUTAGE, Timeline, advance

THEN = Instant(1_000 * SECOND)


def after(seconds: float) -> Instant:
    """Return a time so long after `THEN`."""
    return Instant(THEN + round(seconds * SECOND))


def test_the_first_moment_is_no_outage() -> None:
    """A new service starts at the wall clock's time."""
    timeline, moment = advance(Timeline(), THEN)
    assert (moment.at, moment.alive, moment.outage_ended_at) == (THEN, THEN, 0)
    assert timeline == Timeline(alive_at=THEN)


def test_a_clock_that_is_right_is_followed() -> None:
    """Small steps of the wall clock are not absorbed."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(5.5), after(5))
    assert (moment.at, moment.alive, timeline.skew) == (after(5.5), after(5.5), 0)


def test_a_jump_is_absorbed_in_both_directions() -> None:
    """A clock that is set by an hour changes the skew, not the time."""
    for hour in (3_600, -3_600):
        timeline, moment = advance(Timeline(alive_at=THEN), after(5 + hour), after(5))
        assert (moment.at, moment.alive) == (after(5), after(5))
        later, moment = advance(timeline, after(10 + hour), after(10 + hour))
        assert moment.at == after(10)
        assert later.skew == -hour * SECOND


def test_a_jump_is_absorbed_once() -> None:
    """A second process that sees the same jump finds it in the skew already."""
    timeline, _ = advance(Timeline(alive_at=THEN), after(3_605), after(5))
    expected = Instant(after(6) - timeline.skew)
    again, moment = advance(timeline, after(3_606), expected)
    assert moment.at == after(6)
    assert again.skew == timeline.skew


def test_time_never_runs_back() -> None:
    """What was stored last is the least that it can be, for a process just started, too."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(-0.5))
    assert (moment.at, timeline.skew) == (THEN, 0)
    timeline, moment = advance(Timeline(alive_at=THEN), after(-500))
    assert (moment.at, timeline.skew) == (THEN, 500 * SECOND)
    _, moment = advance(timeline, after(-490))
    assert moment.at == after(10)


def test_an_outage_stops_alive_time() -> None:
    """Service time goes on while nobody serves; alive time does not."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(600))
    assert (moment.at, moment.alive, moment.outage_ended_at) == (after(600), THEN, after(600))
    timeline, moment = advance(timeline, after(605))
    assert (moment.at, moment.alive) == (after(605), after(5))
    assert timeline.downtime == 600 * SECOND


def test_a_quick_restart_is_no_outage() -> None:
    """Up to `OUTAGE` nothing is postponed."""
    _, moment = advance(Timeline(alive_at=THEN), Instant(THEN + OUTAGE))
    assert moment.alive == THEN + OUTAGE
    _, moment = advance(Timeline(alive_at=THEN), Instant(THEN + OUTAGE + 1))
    assert moment.alive == THEN


def test_a_restart_of_the_only_process_is_an_outage_however_short() -> None:
    """Nobody was alive before it began: that time is no holder's silence."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(3), began=NOT_YET)
    assert (moment.at, moment.alive, moment.outage_ended_at) == (after(3), THEN, after(3))
    later, moment = advance(timeline, after(8), after(8), began=after(3))
    assert (moment.alive, later.downtime) == (after(5), 3 * SECOND)
    again, moment = advance(Timeline(alive_at=THEN), after(8), after(8), began=after(3))
    assert (moment.alive, again.downtime) == (after(5), 3 * SECOND)


def test_the_only_process_may_be_stopped_after_its_restart() -> None:
    """Both are outages: before it began, and while it was stopped."""
    stored = Timeline(alive_at=THEN)
    timeline, moment = advance(stored, after(100), after(100), began=after(3))
    assert (moment.alive, moment.outage_ended_at) == (THEN, after(100))
    assert timeline.downtime == 100 * SECOND
