"""Releases by name that may still come after their lease has ended.

A caller of the lease proxy knows only the names of its slots. If its lease ends by its hold, or is
revoked, it may not notice, and release the name later, when another lease has the slot. So a slot
records each holder that has not released it. The next release of that name counts as that
holder's, and changes nothing else.

These records are bounded, so that holders that never return are forgotten: to `LATE` in time and
`LATE_MAX` in number; the oldest are dropped first. A release without a record counts as the present
holder's.
"""

from moorage.core.admission.model import Cause, Lease, is_unconfirmed
from moorage.core.clock import HOUR, Instant

OWNER = "lease-proxy"
"""The owner of all leases made through the lease proxy."""

LATE = 4 * HOUR
"""How long after the end of a lease its holder's release is expected: longer than a CI job."""

LATE_MAX = 16
"""Expected releases of one slot."""

RETURNED: frozenset[Cause] = frozenset({"released", "retried"})
"""Causes of ends that the holder itself requested."""


def expected(
    late: tuple[Instant, ...], lease: Lease, cause: Cause, at: Instant
) -> tuple[Instant, ...]:
    """Return until when releases of a slot are expected, after this lease of it ends."""
    if lease.owner != OWNER or not _is_known(lease) or cause in RETURNED:
        return late
    return (*_current(late, at), Instant(at + LATE))[-LATE_MAX:]


def _is_known(lease: Lease) -> bool:
    """Does the caller know of a lease? One with a TTL was not confirmed by an older release."""
    return lease.ttl is None and not is_unconfirmed(lease)


def without_one(late: tuple[Instant, ...], at: Instant) -> tuple[Instant, ...] | None:
    """Return what is expected after one more release; None: none was expected."""
    current = _current(late, at)
    return current[1:] if current else None


def _current(late: tuple[Instant, ...], at: Instant) -> tuple[Instant, ...]:
    return tuple(until for until in late if until > at)
