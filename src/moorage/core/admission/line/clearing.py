"""The end of everything that one owner has: of its tickets, and of its leases if wanted."""

from collections.abc import Collection, Iterable

from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Cause, Lease, State
from moorage.core.admission.owners import project_of
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.core.limits import DETAIL_LENGTH_MAX
from moorage.core.service_time import Moment
from moorage.core.wildcards import BELOW


def belongs(lease: Lease, owner: str) -> bool:
    """Does a lease belong to an owner, or to one of a project, written as `PROJECT/*`?"""
    if owner.endswith(BELOW):
        return project_of(lease.owner) == owner.removesuffix(BELOW)
    return lease.owner == owner


def clear(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    leases: Iterable[LeaseId],
    owner: str,
    states: Collection[State],
    detail: str,
    *,
    own: bool = False,
    asked_until: Instant | None = None,
) -> tuple[Changes, list[Lease]]:
    """End those of these leases that an owner has in these states; return them as they were.

    Args:
        facts: with the leases and their pools.
        moment: now.
        wall: wall-clock time, stored in slots.
        leases: to end; those that have changed since they were found are left alone.
        owner: an owner, or `PROJECT/*`.
        states: waiting, granted, or both.
        detail: why, for people.
        own: the owner itself ends them: they are withdrawn or released, not revoked.
        asked_until: service time; later requests are left alone. None: all are ended.
    """
    draft, ended = Draft(facts, moment, wall), []
    for key in leases:
        lease = facts.leases.get(key)
        if lease is None or lease.state not in states or not belongs(lease, owner):
            continue
        if asked_until is not None and lease.asked_at > asked_until:
            continue
        by_owner: Cause = "withdrawn" if lease.state == "waiting" else "released"
        draft.end(lease, by_owner if own else "revoked", detail[:DETAIL_LENGTH_MAX])
        ended.append(lease)
    return draft.changes, ended
