"""Releases by name that may still come after their lease has ended.

A caller of the lease proxy knows only the names of its slots. If its lease ends by its hold, or is
revoked, it may not notice, and release the name later, when another lease has the slot. So a slot
records each holder that has not released it. The next release of that name counts as that
holder's, and changes nothing else.

Nobody can see whose release it was. So the present holder is then as good a candidate as the
earlier ones: if its lease ends before another release comes, the record that it leaves names all of
them, and exactly one of them has not released the name. Once somebody knows that the holder of one
of them is gone and never released the name, all others have: nothing is expected any more, and if
the present holder is among them, its lease is over (`settled`).

These records are bounded, so that holders that never return are forgotten: to `LATE` in time and
`LATE_MAX` in number; the oldest are dropped first. A release without a record counts as the present
holder's.
"""

from msgspec import structs

from moorage.core.admission.model import Cause, LateRelease, Lease, Slot
from moorage.core.clock import HOUR, Instant
from moorage.core.ids import LeaseId

OWNER = "lease-proxy"
"""The owner of all leases made through the lease proxy."""

LATE = 4 * HOUR
"""How long after the end of a lease its holder's release is expected: longer than a CI job."""

LATE_MAX = 16
"""Expected releases of one slot."""

CANDIDATES_MAX = 16
"""Leases that one record names; the newest are dropped, except for the present holder's."""

RETURNED: frozenset[Cause] = frozenset({"released", "retried"})
"""Causes of ends that the holder itself requested."""


def expected(
    slot: Slot, lease: Lease, cause: Cause, at: Instant, *, gone: bool = False
) -> tuple[LateRelease | Instant, ...]:
    """Return which releases of a slot are expected after this lease of it ends.

    A lease that still has a TTL has not been confirmed to its caller, see `lease_proxy.confirm`.
    `gone`: its holder is known to be gone, so it has not released the name, and never will.
    """
    if lease.owner != OWNER or lease.ttl is not None or cause in RETURNED or gone:
        return slot.late
    record = LateRelease(Instant(at + LATE), _named(slot.doubtful, lease.id))
    return (*owed(slot, at), record)[-LATE_MAX:]


def taken(slot: Slot, lease: Lease | None, at: Instant) -> Slot | None:
    """Return a slot after one more release that counts as an earlier holder's; None: none does.

    `lease` has the slot; None: it is free. If it is a confirmed lease of the lease proxy, the
    release may have been its own.
    """
    current = owed(slot, at)
    if not current:
        return None
    doubtful = slot.doubtful
    if lease is not None and lease.owner == OWNER and lease.ttl is None:
        doubtful = tuple(dict.fromkeys((*doubtful, *current[0].leases)))
    return structs.replace(slot, late=current[1:], doubtful=doubtful[:CANDIDATES_MAX])


def settled(slot: Slot, gone: LeaseId, at: Instant) -> Slot | None:
    """Return a slot once the holder of a lease that has ended is known to be gone.

    None: nothing is expected because of it. If the holder is in `doubtful`, the release that
    counted as its own was the present holder's: the caller ends that lease.
    """
    left = tuple(one for one in owed(slot, at) if gone not in one.leases)
    if len(left) == len(owed(slot, at)) and gone not in slot.doubtful:
        return None
    return structs.replace(slot, late=left)


def owed(slot: Slot, at: Instant) -> tuple[LateRelease, ...]:
    """Return the releases of a slot that are still expected, the next one first."""
    found = (one if isinstance(one, LateRelease) else LateRelease(one) for one in slot.late)
    return tuple(one for one in found if one.until > at)


def _named(doubtful: tuple[LeaseId, ...], own: LeaseId) -> tuple[LeaseId, ...]:
    return (*doubtful[: CANDIDATES_MAX - 1], own)
