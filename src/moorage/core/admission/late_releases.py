"""Releases by name that come after the lease has ended: which of them are still to be expected.

A caller of the lease proxy knows the names of its slots and nothing else. If its lease ends by its
hold, or is revoked, it may not notice, and it releases the name later, when somebody else has the
slot. So a slot remembers each holder that has not given it back. The next release of that name
counts as that holder's, and changes nothing else.

The memory has bounds, so that holders that are gone for good are forgotten: `LATE` in time, and
`LATE_MAX` in number, of which the oldest go first. A release that comes after its entry is gone
counts as the present holder's.
"""

from moorage.core.admission.model import SECOND, Cause, Lease
from moorage.core.clock import Instant

OWNER = "lease-proxy"
"""Of all leases that are made through the lease proxy."""

LATE = 4 * 3_600 * SECOND
"""How long after the end of a lease its holder's release is expected: longer than a job of CI."""

LATE_MAX = 16
"""Holders of one slot whose release is expected at the same time."""

RETURNED: frozenset[Cause] = frozenset({"released", "retried"})
"""Causes of ends that are their holder's own."""


def expected(
    late: tuple[Instant, ...], lease: Lease, cause: Cause, at: Instant
) -> tuple[Instant, ...]:
    """Return until when releases of a slot are expected, now that this lease of it ends so.

    Nobody was told the names of a lease that has a TTL yet, see `proxied.confirm`.
    """
    if lease.owner != OWNER or lease.ttl is not None or cause in RETURNED:
        return late
    return (*_current(late, at), Instant(at + LATE))[-LATE_MAX:]


def without_one(late: tuple[Instant, ...], at: Instant) -> tuple[Instant, ...] | None:
    """Return what is expected after one more release; None: none was expected."""
    current = _current(late, at)
    return current[1:] if current else None


def _current(late: tuple[Instant, ...], at: Instant) -> tuple[Instant, ...]:
    return tuple(until for until in late if until > at)
