"""What time it is for admission, whatever the wall clock does and however long nobody served.

Service time runs on through jumps of the wall clock; alive time stands still during outages, too.
A jump while no process ran cannot be told from time that passed: forwards it counts as an outage,
backwards the time stands still at the last that was stored. So it does with a process that begins
between a jump back and the next batch of any other; that one then puts the time right at once.
"""

from msgspec import structs

from moorage.core.admission.model import SECOND, Moment, Timeline
from moorage.core.clock import Instant

JUMP = SECOND
"""The wall clock has jumped if it is further than this from what was expected."""

OUTAGE = 15 * SECOND
"""Nobody served if nobody was alive for longer than this. Processes say so every 5 s or so."""

NOT_YET = Instant(1 << 62)
"""For `began`: its first moment is still to come."""


def advance(
    timeline: Timeline,
    wall: Instant,
    expected_wall: Instant | None = None,
    began: Instant | None = None,
) -> tuple[Timeline, Moment]:
    """Return the timeline as of now, and now.

    Args:
        timeline: as stored.
        wall: the wall clock.
        expected_wall: what it should say: the service time of this process's last batch, and what
            its monotonic clock has counted since, less the *present* `timeline.skew` (another
            process may have absorbed the same jump already); None: this process has none yet.
        began: service time at which the only process that serves has begun to (`NOT_YET`: now):
            nobody served before it, be it for less than `OUTAGE`. None: there may be others.
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
