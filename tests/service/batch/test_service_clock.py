"""What time it is for admission, when the wall clock is another machine's."""

from moorage.core.clock import SECOND
from moorage.core.service_time import BEAT, Timeline
from moorage.service.batch.service_clock import ServiceClock
from tests.service.running import HandClock

LONG = 20 * SECOND


def begun(clock: HandClock) -> tuple[ServiceClock, Timeline]:
    """A process that has just had its first batch."""
    service_clock = ServiceClock(clock, alone=False)
    timeline, _ = service_clock.read(Timeline(), clock.now(), clock.monotonic())
    return service_clock, timeline


def test_to_be_stopped_is_no_jump() -> None:
    """A process is stopped after it was told the time: then that is old, and no clock was set."""
    clock = HandClock()
    service_clock, timeline = begun(clock)
    for stop in (LONG, 0, 0):
        clock.at += SECOND
        asked, wall = clock.monotonic(), clock.now()
        clock.at += stop
        timeline, moment = service_clock.read(timeline, wall, asked)
        assert (moment.at, timeline.skew) == (wall, 0)


def test_to_wait_for_the_lock_is_no_jump() -> None:
    """The time is told once the lock is there, however long that takes."""
    clock = HandClock()
    service_clock, timeline = begun(clock)
    for wait in (LONG, 0, 0):
        clock.at += SECOND
        asked = clock.monotonic()
        clock.at += wait
        timeline, moment = service_clock.read(timeline, clock.now(), asked)
        assert (moment.at, timeline.skew) == (clock.now(), 0)


def test_a_jump_is_seen_whichever_way() -> None:
    """A wall clock that is set does not move the time."""
    for jump in (LONG, -LONG):
        clock = HandClock()
        service_clock, timeline = begun(clock)
        clock.at += SECOND
        clock.jump = jump
        timeline, moment = service_clock.read(timeline, clock.now(), clock.monotonic())
        assert (moment.at, timeline.skew) == (clock.at, -jump)


def test_only_a_process_alone_knows_that_nobody_served_before_it() -> None:
    """Beside others, a short gap is theirs: they were alive."""
    for alone, outage in ((True, 4 * SECOND), (False, 0)):
        clock = HandClock()
        _, stored = begun(clock)
        clock.at += 4 * SECOND
        service_clock = ServiceClock(clock, alone=alone)
        assert service_clock.estimate(stored).moment.alive == clock.at - outage
        for _ in range(2):
            timeline, moment = service_clock.read(stored, clock.now(), clock.monotonic())
            assert (moment.at - moment.alive, timeline.downtime) == (outage, outage)
            clock.at += SECOND


def test_a_jump_is_saved_at_once_and_time_every_few_seconds() -> None:
    """A process that starts later would take an unsaved jump for time that has passed."""
    for jump, passed, saved in ((0, SECOND, False), (0, BEAT, True), (LONG, SECOND, True)):
        clock = HandClock()
        service_clock, stored = begun(clock)
        clock.at += passed
        clock.jump = jump
        timeline, _ = service_clock.read(stored, clock.now(), clock.monotonic())
        assert service_clock.must_save(stored, timeline) is saved
