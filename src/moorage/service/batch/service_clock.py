"""Reads service time in this process; the rules are in `core/service_time.py`."""

from moorage.core.clock import Clock, Instant
from moorage.core.service_time import BEAT, NOT_YET, Moment, Timeline, When, advance


class ServiceClock:
    """Computes service time: the wall clock, as long as it agrees with the monotonic clock.

    `alone`: no other process serves this database, so none served it before this one started.
    """

    def __init__(self, clock: Clock, *, alone: bool) -> None:
        self._clock = clock
        self._began = NOT_YET if alone else None
        """Service time of the first reading."""
        self._last: tuple[When, int] | None = None
        """The last reading, and the monotonic time after it."""
        self._timeline = Timeline()
        """The timeline of the last reading."""
        self._last_asked = 0
        """The monotonic time before the last reading."""

    def monotonic(self) -> int:
        """Return the monotonic time, for `read`."""
        return self._clock.monotonic()

    def read(self, timeline: Timeline, wall: Instant, asked: int) -> tuple[Timeline, Moment]:
        """Return the timeline and the moment of a batch that has just locked it.

        `asked`: the monotonic time before `wall` was read. Reading it may have taken long, or this
        process may have been stopped since: neither counts as a jump.
        """
        now = self._clock.monotonic()
        expected = None
        if self._last is not None:
            when, then = self._last
            last = when.moment.at - timeline.skew
            expected = Instant(min(max(wall, last + asked - then), last + now - self._last_asked))
        timeline, moment = advance(timeline, wall, expected, self._began)
        if self._began == NOT_YET:
            self._began = moment.at
        self._last, self._last_asked = (When(moment, wall), now), asked
        self._timeline = timeline
        return timeline, moment

    def present(self, wall: Instant, stamp: Instant) -> When:
        """Return the time of a batch that decides nothing by service time: an estimate of it."""
        return When(self.estimate(self._timeline).moment, wall, stamp)

    def estimate(self, timeline: Timeline) -> When:
        """Return the time now for reads; `timeline` as it is stored."""
        if self._last is None:
            wall = self._clock.now()
            _, moment = advance(timeline, wall, began=self._began)
            return When(moment, wall)
        if timeline.alive_at < self._timeline.alive_at:  # read before the last batch has committed
            timeline = self._timeline
        when, then = self._last
        passed = self._clock.monotonic() - then
        at = Instant(max(when.moment.at + passed, timeline.alive_at))
        moment = Moment(at, Instant(at - timeline.downtime), timeline.outage_ended_at)
        return When(moment, Instant(when.wall + passed))

    def since(self, when: When) -> When:
        """Return the time now, given the time of a batch."""
        if self._last is None:
            return when
        last, then = self._last
        passed = max(0, last.moment.at + self._clock.monotonic() - then - when.moment.at)
        at, alive = Instant(when.moment.at + passed), Instant(when.moment.alive + passed)
        moment = Moment(at, alive, when.moment.outage_ended_at)
        return When(moment, Instant(when.wall + passed))

    def must_save(self, stored: Timeline, now: Timeline) -> bool:
        """Return whether to save the timeline even if a batch changes nothing else.

        A process that starts later would take a jump that is not saved for time that has passed.
        """
        jumped = now.skew != stored.skew or now.downtime != stored.downtime
        return jumped or now.alive_at - stored.alive_at >= BEAT

    def is_late(self, timeline: Timeline, when: When) -> bool:
        """Return whether `alive_at` is so old that it must be written again.

        Also before the first reading: if the wall clock is behind then, every estimate is
        `alive_at`, and only a reading lets time continue.
        """
        return self._last is None or when.moment.at - timeline.alive_at >= BEAT
