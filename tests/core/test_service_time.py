"""Service time absorbs jumps of the wall clock, and alive time stops during an outage."""

from moorage.core.clock import SECOND, Instant
from moorage.core.service_time import NOT_YET, OUTAGE, Timeline, advance

THEN = Instant(1_000 * SECOND)


def after(seconds: float) -> Instant:
    """Return the time this many seconds after `THEN`."""
    return Instant(THEN + round(seconds * SECOND))


def test_the_first_moment_is_no_outage() -> None:
    """The service time of a new service starts at the wall clock's time."""
    timeline, moment = advance(Timeline(), THEN)
    assert (moment.at, moment.alive, moment.outage_ended_at) == (THEN, THEN, 0)
    assert timeline == Timeline(alive_at=THEN)


def test_small_deviations_of_the_clock_are_followed() -> None:
    """Small deviations of the wall clock are not absorbed."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(5.5), after(5))
    assert (moment.at, moment.alive, timeline.skew) == (after(5.5), after(5.5), 0)


def test_a_jump_is_absorbed_in_both_directions() -> None:
    """A clock that is set forward or back by an hour changes the skew, not the service time."""
    for hour in (3_600, -3_600):
        timeline, moment = advance(Timeline(alive_at=THEN), after(5 + hour), after(5))
        assert (moment.at, moment.alive) == (after(5), after(5))
        later, moment = advance(timeline, after(10 + hour), after(10 + hour))
        assert moment.at == after(10)
        assert later.skew == -hour * SECOND


def test_a_jump_is_absorbed_once() -> None:
    """A second process that sees the same jump finds it in the skew and does not add it again."""
    timeline, _ = advance(Timeline(alive_at=THEN), after(3_605), after(5))
    expected = Instant(after(6) - timeline.skew)
    again, moment = advance(timeline, after(3_606), expected)
    assert moment.at == after(6)
    assert again.skew == timeline.skew


def test_time_never_runs_back() -> None:
    """Service time is never before the last stored time, even in a process that just started."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(-0.5))
    assert (moment.at, timeline.skew) == (THEN, 0)
    timeline, moment = advance(Timeline(alive_at=THEN), after(-500))
    assert (moment.at, timeline.skew) == (THEN, 500 * SECOND)
    _, moment = advance(timeline, after(-490))
    assert moment.at == after(10)


def test_an_outage_stops_alive_time() -> None:
    """While no process is alive, service time continues and alive time stops."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(600))
    assert (moment.at, moment.alive, moment.outage_ended_at) == (after(600), THEN, after(600))
    timeline, moment = advance(timeline, after(605))
    assert (moment.at, moment.alive) == (after(605), after(5))
    assert timeline.downtime == 600 * SECOND


def test_a_quick_restart_is_no_outage() -> None:
    """A gap of up to `OUTAGE` does not stop alive time."""
    _, moment = advance(Timeline(alive_at=THEN), Instant(THEN + OUTAGE))
    assert moment.alive == THEN + OUTAGE
    _, moment = advance(Timeline(alive_at=THEN), Instant(THEN + OUTAGE + 1))
    assert moment.alive == THEN


def test_a_restart_of_the_only_process_is_an_outage_however_short() -> None:
    """No process was alive before the restart, so holders could not renew in that time."""
    timeline, moment = advance(Timeline(alive_at=THEN), after(3), began=NOT_YET)
    assert (moment.at, moment.alive, moment.outage_ended_at) == (after(3), THEN, after(3))
    later, moment = advance(timeline, after(8), after(8), began=after(3))
    assert (moment.alive, later.downtime) == (after(5), 3 * SECOND)
    again, moment = advance(Timeline(alive_at=THEN), after(8), after(8), began=after(3))
    assert (moment.alive, again.downtime) == (after(5), 3 * SECOND)


def test_the_only_process_may_be_stopped_after_its_restart() -> None:
    """The time before its start and the time while it was stopped are one outage."""
    stored = Timeline(alive_at=THEN)
    timeline, moment = advance(stored, after(100), after(100), began=after(3))
    assert (moment.alive, moment.outage_ended_at) == (THEN, after(100))
    assert timeline.downtime == 100 * SECOND
