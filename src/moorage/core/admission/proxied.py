"""Leases of the lease proxy: nobody renews them; their units are given back one by one, by name.

Units of a pool with slots have the slots' names; other units are called by the lease and a number.
"""

import re

from msgspec import structs

from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.holding import let_go, slot_named
from moorage.core.admission.model import FREE, Lease, Moment
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId, is_normal

OWNER = "lease-proxy"
"""Of all leases that are made through it."""

RETURNED = "returned"
"""The label that tells which numbered units were given back."""

_NUMBERED = re.compile(r"(?P<lease>[0-9a-f-]{36})\.(?P<number>[0-9]{1,9})")


def confirm(facts: Facts, lease: LeaseId) -> Changes:
    """Let a granted lease last until it is given back, or until its hold is over.

    Raises LEASE_ENDED: it was not granted, or it was and has ended.
    """
    found = facts.leases.get(lease)
    if found is None or found.state != "granted":
        raise Error(Code.LEASE_ENDED, f"lease {lease} has ended")
    return Changes(leases={lease: structs.replace(found, ttl=None, heard_until=None)})


def names_of(facts: Facts, lease: Lease) -> list[str]:
    """Return the names of all units of a lease."""
    if lease.slots:
        return [name for _, names in sorted(lease.slots.items()) for name in names]
    return [f"{lease.id}.{n}" for n in range(sum(need.units for need in lease.needs))]


def lease_of(name: str) -> LeaseId | None:
    """Return the lease whose numbered unit this is; None: it is the name of a slot."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not is_normal(found["lease"]):
        return None
    return LeaseId(found["lease"])


def give_back(facts: Facts, moment: Moment, wall: Instant, name: str) -> Changes:
    """Give one unit back. If it was given back already, or is somebody else's, nothing changes.

    Raises SLOT_NOT_FOUND: there never was such a unit, as far as is known.
    """
    draft = Draft(facts, moment, wall)
    lease = lease_of(name)
    if lease is not None:
        _numbered(draft, lease, name)
        return draft.changes
    slot = slot_named(facts, name)
    if slot is None:
        raise Error(Code.SLOT_NOT_FOUND, f"no resource name {name}")
    if slot.lease is not None and facts.leases[slot.lease].owner == OWNER:
        let_go(draft, [slot], FREE, "released")
    return draft.changes


def _numbered(draft: Draft, key: LeaseId, name: str) -> None:
    lease = draft.facts.leases.get(key)
    if lease is None or lease.owner != OWNER:
        raise Error(Code.SLOT_NOT_FOUND, f"no resource name {name}")
    number = name.rpartition(".")[2]
    returned = lease.labels.get(RETURNED, "").split()
    if lease.state != "granted" or number in returned:
        return
    (need,) = lease.needs
    if int(number) >= need.units + len(returned) or str(int(number)) != number:
        raise Error(Code.SLOT_NOT_FOUND, f"no resource name {name}")
    if need.units == 1:
        draft.end(lease, "released")
        return
    labels = {**lease.labels, RETURNED: " ".join([*returned, number])}
    left = structs.replace(need, units=need.units - 1)
    draft.vacate(need.pool, 1, idle=1)
    draft.put(structs.replace(lease, needs=(left,), labels=labels))
