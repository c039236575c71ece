"""The service's own time, independent of jumps of the wall clock and of outages.

Service time ignores jumps of the wall clock; alive time also stops during outages. A jump while no
process runs cannot be distinguished from elapsed time: a forward jump counts as an outage; after a
backward jump, time continues from the last stored value. The same happens when a process starts
between a backward jump and the next batch of another process; that batch then corrects the time.
"""

from msgspec import Struct, structs

from moorage.core.clock import SECOND, Instant

JUMP = SECOND
"""A larger difference between the wall clock and its expected value is a jump."""

BEAT = 5 * SECOND
"""How often a process updates `alive_at`, while any deadline depends on it."""

OUTAGE = 3 * BEAT
"""A longer gap in `alive_at` is an outage."""

NOT_YET = Instant(1 << 62)
"""For `began`: the process starts with this batch."""


class Timeline(Struct, frozen=True):
    """How service time relates to the wall clock.

    It is one row; a batch that decides by service time locks it.

    Service time is the wall clock without its jumps: `wall + skew`. Alive time is service time
    without outages: `wall + skew - downtime`.
    """

    skew: int = 0
    downtime: int = 0
    """Microseconds, all outages together."""
    alive_at: Instant = Instant(0)
    """Service time at which some process was last known to be alive; 0: never."""
    outage_ended_at: Instant = Instant(0)
    """Service time at which the latest outage ended; 0: there was none."""


class Moment(Struct, frozen=True):
    """The current time of a batch, in service time and in alive time."""

    at: Instant
    """For deadlines that do not depend on the service running: holds, pacing, cooldown."""
    alive: Instant
    """For deadlines that clients extend by requests: TTL and patience."""
    outage_ended_at: Instant = Instant(0)


class When(Struct, frozen=True):
    """The time of a batch, as a moment and by the wall clock."""

    moment: Moment
    wall: Instant
    stamp: Instant = Instant(0)
    """For a decision: the time of the rows that it creates, by the wall clock and later than that
    of every earlier decision of the process. Rows are listed in this order."""


def advance(
    timeline: Timeline,
    wall: Instant,
    expected_wall: Instant | None = None,
    began: Instant | None = None,
) -> tuple[Timeline, Moment]:
    """Return the timeline as of now, and the current moment.

    Args:
        timeline: as stored.
        wall: the wall clock.
        expected_wall: its expected value: the service time of this process's last batch, plus the
            monotonic time since, minus the *present* `timeline.skew` (another process may have
            absorbed the same jump already); None: this process has had no batch yet.
        began: service time at which this process started, if no other one serves (`NOT_YET`: it
            starts now); the gap before counts as downtime, even if shorter than `OUTAGE`. None:
            there may be other processes.
    """
    skew = timeline.skew
    if expected_wall is not None and abs(wall - expected_wall) > JUMP:
        skew += expected_wall - wall
    at = wall + skew
    if at < timeline.alive_at:
        if timeline.alive_at - at > JUMP:
            skew = timeline.alive_at - wall
        at = timeline.alive_at
    downtime, outage_ended_at = timeline.downtime, timeline.outage_ended_at
    lived_at = timeline.alive_at
    if lived_at and began is not None and lived_at < (back_at := min(began, at)):
        downtime += back_at - lived_at
        lived_at = outage_ended_at = Instant(back_at)
    if lived_at and at - lived_at > OUTAGE:
        downtime += at - lived_at
        outage_ended_at = Instant(at)
    after = structs.replace(
        timeline,
        skew=skew,
        downtime=downtime,
        alive_at=Instant(at),
        outage_ended_at=outage_ended_at,
    )
    return after, moment_of(after)


def moment_of(timeline: Timeline) -> Moment:
    """Return the moment at which the service was last known to be alive."""
    alive = Instant(timeline.alive_at - timeline.downtime)
    return Moment(timeline.alive_at, alive, timeline.outage_ended_at)
