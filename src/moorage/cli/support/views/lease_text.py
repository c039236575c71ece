"""Parts of leases and tickets as text."""

from datetime import datetime

from moorage.client.run.durations import OVERDUE, eta_spoken
from moorage.wire.admission import Lease, NeedWanted, Waiting


def needs_text(lease: Lease) -> str:
    """Return the needs of a lease as `POOL=UNITS ...`, with labels as `POOL[NAME=VALUE]=UNITS`."""
    return " ".join(f"{need.pool}{_labels(need)}={need.units}" for need in lease.needs)


def _labels(need: NeedWanted) -> str:
    labels = ",".join(f"{name}={value}" for name, value in need.labels.items())
    return f"[{labels}]" if labels else ""


def eta_text(waiting: Waiting) -> str:
    """Return when a ticket may be granted; empty if unknown."""
    if waiting.overdue:
        return OVERDUE
    return "" if waiting.eta_seconds is None else eta_spoken(*waiting.eta_seconds)


def time_text(at: datetime) -> str:
    """Return a time to the second."""
    return at.isoformat(timespec="seconds")
