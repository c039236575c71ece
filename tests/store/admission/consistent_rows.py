"""A small, consistent admission with at least one row of each kind."""

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import FencingToken, StartOutcome
from moorage.core.clock import Instant
from moorage.core.service_time import Timeline
from tests.store.admission.grants import AT, changed, ended, granted, lease_id, pool, slot, ticket

HOLDER = granted(ticket(1, "a", "s"), slots={"s": ("one",)}, token=FencingToken(1, 1, 0))
WAITING = ticket(2, "a", "s")
ENDED = ended(granted(ticket(3, "a", "s"), slots={"s": ("two",)}, token=FencingToken(1, 1, 1)))


def outcome(n: int) -> StartOutcome:
    """Return the outcome of the n-th lease."""
    return StartOutcome(lease_id(n), "a", AT, "ok", "fine", 4, 1)


ALIVE = Timeline(alive_at=AT)
"""The service was alive at the time of the rows."""


def consistent_changes() -> Changes:
    """Return two pools, one with slots; a granted lease, a waiting gang, and an ended lease."""
    changes = changed(
        pool("a", occupied=1, waiting=1, gangs=1, quota=3, wake_at=Instant(AT + 5)),
        pool("s", None, occupied=1, waiting=1, gangs=1, awaited={"free": 1}),
        slot("s", "one", owner="owner", lease=HOLDER.id),
        slot("s", "two"),
        HOLDER,
        WAITING,
        ENDED,
    )
    changes.arrivals = 3
    changes.outcomes = [outcome(1), outcome(3)]
    return changes
