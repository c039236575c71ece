"""When to look at a pool again although nobody asks: time alone may permit a grant, or end it."""

from collections.abc import Collection, Mapping

from msgspec import structs

from moorage.core.admission import pacing
from moorage.core.admission.calendar.booked_pools import BookedPools
from moorage.core.admission.draft import Draft
from moorage.core.admission.templates import looked_at
from moorage.core.clock import Instant


def wake(
    draft: Draft,
    silent_at: Mapping[str, Instant],
    awaited: Collection[str],
    booked: BookedPools | None,
) -> None:
    """Set for every pool when time alone may allow a grant, or ends it as `templates` say.

    Args:
        draft: after all grants.
        silent_at: by pool, when a ticket with units set aside is passed over, or may have others
            stop.
        awaited: cohorts in which a ticket waits for what others lend.
        booked: the pools with bookings; None: there are none.
    """
    at, changed = draft.moment.at, draft.changes.pools
    for name, stored in draft.facts.pools.items():
        pool = changed.get(name) or stored
        timed = pool.resting or pool.spec.pacing is not None or silent_at
        silent = silent_at.get(name)
        wake_at = pacing.wakes_at(pool, at, silent) if pool.waiting and timed else None
        if pool.paused:
            wake_at = pool.paused_until  # also without a line: a sweep ends the pause
        if pool.resting and pool.spec.cohort in awaited:
            # Others of its cohort wait for what it lends, or has lent before it was paused.
            rested = [rest.until for rest in pool.resting if rest.until > at]
            wake_at = min(rested if wake_at is None else [*rested, wake_at], default=None)
        if booked:  # also without a line: what nobody uses is given back, and ends
            wake_at = booked.sooner(pool, wake_at)
        if pool.on_demand is not None:
            used = looked_at(pool, at)
            if used is None or used is not pool:
                changed[name] = used
            if used is None:
                continue
            pool = used
            idle_until = None if used.on_demand is None else used.on_demand.idle_until
            wake_at = wake_at if idle_until is None else idle_until
        if wake_at != pool.wake_at:
            rests = tuple(rest for rest in pool.resting if rest.until > at)
            changed[name] = structs.replace(pool, wake_at=wake_at, resting=rests)
