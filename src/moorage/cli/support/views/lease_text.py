"""Parts of leases and tickets as text."""

from collections.abc import Iterator
from datetime import datetime

from moorage.cli.support.tables import Cell
from moorage.client.run.durations import OVERDUE, eta_spoken
from moorage.wire.admission import Lease, NeedWanted, Waiting, WaitingFor
from moorage.wire.slots import LateRelease


def needs_text(lease: Lease) -> str:
    """Return the needs of a lease as `POOL=UNITS ...`, with labels as `POOL[NAME=VALUE]=UNITS`.

    Alternatives of which none was granted are separated by ` | `.
    """
    return any_of_text(lease) if _is_open(lease) else " ".join(map(_need, lease.needs))


def any_of_text(lease: Lease) -> str:
    """Return the alternatives that a lease was asked for with; empty if there were none."""
    return " | ".join(" ".join(map(_need, needs)) for needs in lease.any_of)


def alternative_lines(lease: Lease) -> Iterator[str]:
    """Yield what a ticket waits for in each of its alternatives."""
    for one in () if lease.waiting is None else lease.waiting.alternatives:
        place = f"place {one.position}"
        eta = eta_text(one)
        yield f"{' '.join(map(_need, one.needs))}: {place}{', ' if eta else ''}{eta}; {one.reason}"


def _is_open(lease: Lease) -> bool:
    return bool(lease.any_of) and lease.granted_at is None


def needs_cell(lease: Lease) -> Cell:
    """Return the needs of a lease: on a terminal without the units where it is one."""
    alternatives = lease.any_of if _is_open(lease) else [lease.needs]
    short = (" ".join(_need(need).removesuffix("=1") for need in one) for one in alternatives)
    return Cell(" | ".join(short), needs_text(lease))


def _need(need: NeedWanted) -> str:
    labels = ",".join(f"{name}={value}" for name, value in need.labels.items())
    return f"{need.pool}[{labels}]={need.units}" if labels else f"{need.pool}={need.units}"


def eta_text(waiting: Waiting | WaitingFor) -> str:
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
    times = (lease.expires_at, lease.hold_until, lease.stop_until)
    return lease.ended_at or min((at for at in times if at is not None), default=None)


def remark_of(lease: Lease) -> str:
    """Return what is special about a granted lease; empty: nothing."""
    if lease.state != "granted":
        return ""
    if lease.stop_until is not None:
        return f"asked to stop for {lease.preempted_by or lease.superseded_by}"
    if lease.kept is not None:
        why = f": {lease.kept.reason}" if lease.kept.reason else ""
        waiting = f"; {lease.kept.waiting} in line for its units" if lease.kept.waiting else ""
        return f"kept for inspection{why}{waiting}"
    if lease.offer is not None:
        return f"offered to {lease.offer.to}"
    return "unheard" if lease.unheard else ""


def late_lines(lease: Lease) -> Iterator[str]:
    """Yield a sentence for each release by name that counts, or has counted, as an earlier one's.

    It ends with the command for a holder that is gone.
    """
    for one in lease.late_releases:
        if one.until is None:
            *earlier, present = one.leases
            yield (
                f"a release of {one.slot} was counted for lease {' or '.join(earlier)}, but may"
                f" have come from lease {present}; {_if_gone(earlier)}"
            )
        else:
            yield late_line(one)


def late_line(one: LateRelease) -> str:
    """Return the sentence for a release that is expected until some time."""
    whose = " or ".join(one.leases) or "an earlier holder"
    until = "" if one.until is None else f" until {time_text(one.until)}"
    gone = f"; {_if_gone(one.leases)}" if one.leases else ""
    return f"the next release of {one.slot} counts for {whose}{until}{gone}"


def _if_gone(leases: list[str]) -> str:
    return f"if its holder is gone: moorage lease revoke {leases[0]} --holder-is-gone"
