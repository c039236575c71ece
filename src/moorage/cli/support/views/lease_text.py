"""Parts of leases and tickets as text."""

from datetime import datetime

from moorage.cli.support.tables import Cell
from moorage.client.run.durations import OVERDUE, eta_spoken
from moorage.wire.admission import Lease, NeedWanted, Waiting


def needs_text(lease: Lease) -> str:
    """Return the needs of a lease as `POOL=UNITS ...`, with labels as `POOL[NAME=VALUE]=UNITS`."""
    return " ".join(map(_need, lease.needs))


def needs_cell(lease: Lease) -> Cell:
    """Return the needs of a lease: on a terminal without the units where it is one."""
    needs = [_need(need) for need in lease.needs]
    return Cell(" ".join(one.removesuffix("=1") for one in needs), " ".join(needs))


def _need(need: NeedWanted) -> str:
    labels = ",".join(f"{name}={value}" for name, value in need.labels.items())
    return f"{need.pool}[{labels}]={need.units}" if labels else f"{need.pool}={need.units}"


def eta_text(waiting: Waiting) -> str:
    """Return when a ticket may be granted; empty if unknown."""
    if waiting.overdue:
        return OVERDUE
    return "" if waiting.eta_seconds is None else eta_spoken(*waiting.eta_seconds)


def time_text(at: datetime) -> str:
    """Return a time to the second."""
    return at.isoformat(timespec="seconds")


def since_of(lease: Lease) -> datetime:
    """Return since when a lease has been in its state."""
    return lease.ended_at or lease.granted_at or lease.asked_at


def until_of(lease: Lease) -> datetime | None:
    """Return when a lease ended, or ends unless it is renewed; None: nothing ends it by itself."""
    times = (lease.expires_at, lease.hold_until)
    return lease.ended_at or min((at for at in times if at is not None), default=None)
