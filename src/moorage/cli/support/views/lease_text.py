"""Parts of leases and tickets as text."""

from datetime import datetime

from moorage.client.run.durations import OVERDUE, eta_spoken
from moorage.wire.admission import Lease, Waiting


def needs_text(lease: Lease) -> str:
    """Return the needs of a lease as `POOL=UNITS ...`."""
    return " ".join(f"{need.pool}={need.units}" for need in lease.needs)


def eta_text(waiting: Waiting) -> str:
    """Return when a ticket may be granted; empty if unknown."""
    if waiting.overdue:
        return OVERDUE
    return "" if waiting.eta_seconds is None else eta_spoken(*waiting.eta_seconds)


def time_text(at: datetime) -> str:
    """Return a time to the second."""
    return at.isoformat(timespec="seconds")
