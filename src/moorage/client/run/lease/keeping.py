"""Keeps the lease of a command that has failed, so that somebody can look at what it held."""

from __future__ import annotations

from moorage.client.run.api_types import Lease
from moorage.client.run.lease.api import Leases
from moorage.client.transport import RefusedError

TROUBLE_STATUS = 500


def keep_or_release(
    leases: Leases, lease: Lease, seconds: float, reason: str, seconds_max: float
) -> str:
    """Keep a lease for inspection; release it if the server refuses that. Returns what was done.

    Safe to repeat. Raises as the calls of `Leases`, but not for a refusal.
    """
    try:
        kept = leases.keep(lease.id, lease.token, seconds, reason, seconds_max)
    except RefusedError as refusal:
        if refusal.status >= TROUBLE_STATUS:
            raise
        leases.release(lease.id, lease.token, seconds_max)
        return f"lease {lease.id} is released, because it cannot be kept: {refusal}"
    return (
        f"lease {lease.id} is kept for inspection until {kept.hold_until}; to end it earlier:"
        f" moorage lease release {lease.id}"
    )
