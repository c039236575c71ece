"""Releases by name that may still come after their lease has ended.

A caller of the lease proxy knows only the names of its slots. If its lease ends by its hold, or is
revoked, it may not notice, and release the name later, when another lease has the slot. So a slot
records each holder that has not released it. The next release of that name counts as that
holder's, and changes nothing else.

Nobody can see whose release it was. So from then on all whose releases were expected are one group,
together with the present holder, whose own it may have been. As many of them have not released the
name as releases are still expected. Once somebody knows that the holder of one of them is gone,
and never released the name, one less is expected of the others; if none is, the present holder has
released its slot, and its lease is over (`settled`).

These records are bounded, so that holders that never return are forgotten: to `LATE` in time and
`LATE_MAX` in number; the oldest are dropped first. A release without a record counts as the present
holder's.
"""

from msgspec import structs

from moorage.core.admission.model import Cause, LateRelease, Lease, Slot, is_unconfirmed
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.clock import HOUR, Instant
from moorage.core.ids import LeaseId

LATE = 4 * HOUR
"""How long after the end of a lease its holder's release is expected: longer than a CI job."""

LATE_MAX = 16
"""Expected releases of one slot."""

CANDIDATES_MAX = 16
"""Leases that a group names; the newest are dropped, except for the last holder's."""

RETURNED: frozenset[Cause] = frozenset({"released", "retried"})
"""Causes of ends that the holder itself requested."""


def expected(
    slot: Slot, lease: Lease, cause: Cause, at: Instant, *, gone: bool = False
) -> tuple[LateRelease | Instant, ...]:
    """Return which releases of a slot are expected after this lease of it ends.

    `gone`: its holder is known to be gone, so it has not released the name, and never will.
    """
    if lease.owner != LEASE_PROXY or is_unconfirmed(lease) or cause in RETURNED or gone:
        return slot.late
    before: tuple[LateRelease, ...] = owed(slot, at)
    group: tuple[LeaseId, ...] = (lease.id,)
    if slot.doubtful:
        group = (*slot.doubtful[: CANDIDATES_MAX - 1], lease.id)
        before = _of_group(before, group)
    return (*before, LateRelease(Instant(at + LATE), group))[-LATE_MAX:]


def taken(slot: Slot, lease: Lease | None, at: Instant) -> Slot | None:
    """Return a slot after one more release that counts as an earlier holder's; None: none does.

    `lease` has the slot; None: it is free. If it is a confirmed lease of the lease proxy, the
    release may have been its own.
    """
    current = owed(slot, at)
    if not current:
        return None
    named = (*slot.doubtful, *(key for one in current for key in one.leases))
    group = tuple(dict.fromkeys(named))[:CANDIDATES_MAX]
    shares = lease is not None and lease.owner == LEASE_PROXY and not is_unconfirmed(lease)
    late = _of_group(current[1:], group)
    return structs.replace(slot, late=late, doubtful=group if shares else ())


def settled(slot: Slot, gone: LeaseId, at: Instant) -> Slot | None:
    """Return a slot once the holder of a lease that has ended is known to be gone.

    None: nothing is expected because of it.
    """
    current = owed(slot, at)
    own = [n for n, one in enumerate(current) if gone in one.leases]
    if not own and gone not in slot.doubtful:
        return None
    left = [one for n, one in enumerate(current) if [n] != own[:1]]
    late = tuple(LateRelease(one.until, _without(one.leases, gone)) for one in left)
    return structs.replace(slot, late=late, doubtful=_without(slot.doubtful, gone))


def is_over(slot: Slot, gone: LeaseId, at: Instant) -> bool:
    """Has the present holder released its slot, if the holder of this lease is gone?

    It has if its release counted as that of the other, and nothing else is expected.
    """
    return slot.lease is not None and gone in slot.doubtful and not owed(slot, at)


def owed(slot: Slot, at: Instant) -> tuple[LateRelease, ...]:
    """Return the releases of a slot that are still expected, the next one first."""
    found = (one if isinstance(one, LateRelease) else LateRelease(one) for one in slot.late)
    return tuple(one for one in found if one.until > at)


def _of_group(
    records: tuple[LateRelease, ...], group: tuple[LeaseId, ...]
) -> tuple[LateRelease, ...]:
    return tuple(LateRelease(one.until, group) for one in records)


def _without(leases: tuple[LeaseId, ...], gone: LeaseId) -> tuple[LeaseId, ...]:
    return tuple(one for one in leases if one != gone)
