"""Gives the leases of a file back, whatever the server has answered so far."""

from __future__ import annotations

from moorage.client.run.api_types import Lease
from moorage.client.run.handles.by_id import BY_HOLDER, over
from moorage.client.run.handles.file import Handle, HandleEntry
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.renewer import GONE, carry_through
from moorage.client.transport import RefusedError

UNKNOWN = "unknown to the server: it ended too long ago, or belongs to another server"
NOTHING_THERE = ("lease_not_found", "pool_unknown", "units_above_limit", "queue_full", "invalid")
"""Codes of refusals that prove that the server has neither a lease nor a ticket for the request."""


def give_back_entry(
    handle: Handle, entry: HandleEntry, leases: Leases, seconds: float
) -> str | None:
    """Release one lease and drop its entry; return a note if the lease had ended before.

    Raises the error that prevented the release.
    """
    ended: list[Lease] = []
    calls = [lambda left: ended.append(_released(entry, leases, left))]
    (trouble,) = carry_through(calls, seconds)
    if trouble is not None and getattr(trouble, "code", "") not in NOTHING_THERE:
        raise trouble
    with handle.locked():
        handle.drop(entry)
    if trouble is not None:
        return f"lease {entry.id} is {UNKNOWN}" if entry.answered else f"no lease: {trouble}"
    return None if ended[0].cause in BY_HOLDER else over(ended[0])


def _released(entry: HandleEntry, leases: Leases, seconds: float) -> Lease:
    """Release every lease that the server may have for an entry; return the last one.

    If the newest attempt was never answered, its lease's id is unknown. The same request with the
    same key returns it; if this creates a new lease, it is released at once.
    """
    if entry.id is not None:
        try:
            ended = leases.release(entry.id, entry.token, seconds)
        except RefusedError as refusal:
            if entry.answered or refusal.code not in GONE:
                raise
        else:
            if entry.answered:
                return ended
    lease = leases.ask(entry.wish, entry.key, seconds)
    return leases.release(lease.id, lease.token, seconds)
