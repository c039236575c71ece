"""Service time, when the wall clock is that of another machine."""

from moorage.core.clock import SECOND
from moorage.core.service_time import BEAT, Timeline
from moorage.service.batch.service_clock import ServiceClock
from tests.service.running import ManualClock

LONG = 20 * SECOND


def begun(clock: ManualClock) -> tuple[ServiceClock, Timeline]:
    """The clock and timeline of a process after its first batch."""
    service_clock = ServiceClock(clock, alone=False)
    timeline, _ = service_clock.read(Timeline(), clock.now(), clock.monotonic())
    return service_clock, timeline


def test_a_stop_of_the_process_is_no_jump() -> None:
    """A process that is stopped after it read the time has an old time; no clock was set."""
    clock = ManualClock()
    service_clock, timeline = begun(clock)
    for stop in (LONG, 0, 0):
        clock.at += SECOND
        asked, wall = clock.monotonic(), clock.now()
        clock.at += stop
        timeline, moment = service_clock.read(timeline, wall, asked)
        assert (moment.at, timeline.skew) == (wall, 0)


def test_a_wait_for_the_lock_is_no_jump() -> None:
    """The time is read once the lock is granted, however long that takes."""
    clock = ManualClock()
    service_clock, timeline = begun(clock)
    for wait in (LONG, 0, 0):
        clock.at += SECOND
        asked = clock.monotonic()
        clock.at += wait
        timeline, moment = service_clock.read(timeline, clock.now(), asked)
        assert (moment.at, timeline.skew) == (clock.now(), 0)


def test_a_jump_is_seen_in_both_directions() -> None:
    """Setting the wall clock does not change the service time."""
    for jump in (LONG, -LONG):
        clock = ManualClock()
        service_clock, timeline = begun(clock)
        clock.at += SECOND
        clock.jump = jump
        timeline, moment = service_clock.read(timeline, clock.now(), clock.monotonic())
        assert (moment.at, timeline.skew) == (clock.at, -jump)


def test_only_a_single_process_counts_a_short_gap_as_an_outage() -> None:
    """With peers, the service may have been alive during the gap."""
    for alone, outage in ((True, 4 * SECOND), (False, 0)):
        clock = ManualClock()
        _, stored = begun(clock)
        clock.at += 4 * SECOND
        service_clock = ServiceClock(clock, alone=alone)
        assert service_clock.estimate(stored).moment.alive == clock.at - outage
        for _ in range(2):
            timeline, moment = service_clock.read(stored, clock.now(), clock.monotonic())
            assert (moment.at - moment.alive, timeline.downtime) == (outage, outage)
            clock.at += SECOND


def test_a_jump_is_saved_at_once_and_time_every_few_seconds() -> None:
    """A process that starts later would count an unsaved jump as elapsed time."""
    for jump, passed, saved in ((0, SECOND, False), (0, BEAT, True), (LONG, SECOND, True)):
        clock = ManualClock()
        service_clock, stored = begun(clock)
        clock.at += passed
        clock.jump = jump
        timeline, _ = service_clock.read(stored, clock.now(), clock.monotonic())
        assert service_clock.must_save(stored, timeline) is saved
