"""Leases of the lease proxy: nobody renews them; their units are given back one by one, by name.

Units of a pool with slots have the slots' names; other units are called by the lease and a number.
A slot's name does not say whose release it is, see `late_releases.py`.
"""

import re

from msgspec import structs

from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.holding import let_go, slot_named
from moorage.core.admission.late_releases import LATE, OWNER, without_one
from moorage.core.admission.model import FREE, Lease, Moment, Slot
from moorage.core.admission.slots import BOSKOS
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId, is_normal

RETURNED = "returned"
"""The label that tells which numbered units were given back."""

_NUMBERED = re.compile(r"(?P<lease>[0-9a-f-]{36})\.(?P<number>[0-9]{1,9})")


def is_reserved(owner: str) -> bool:
    """Is it a name under which clients of Boskos or of the lease proxy hold leases?"""
    return owner.startswith(BOSKOS) or owner == OWNER


def confirm(facts: Facts, moment: Moment, lease: LeaseId) -> Changes:
    """Let a granted lease last until it is given back, or until its hold is over.

    That is at the latest after the `proxy_ttl` of its pool.

    Raises LEASE_ENDED: it was not granted, or it was and has ended.
    """
    found = facts.leases.get(lease)
    if found is None or found.state != "granted":
        raise Error(Code.LEASE_ENDED, f"lease {lease} has ended")
    pools = [facts.pools[need.pool] for need in found.needs]
    spans = [pool.spec.proxy_ttl for pool in pools if pool.spec.proxy_ttl is not None]
    ends = [Instant(moment.at + span) for span in spans]
    ends += [] if found.hold_until is None else [found.hold_until]
    told = structs.replace(found, ttl=None, heard_until=None, hold_until=min(ends, default=None))
    return Changes(leases={lease: told})


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

    Nor does the present holder lose a slot by the late release of an earlier one.

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
    late = without_one(slot.late, moment.at)
    if late is not None:
        draft.changes.slots[slot.pool, slot.name] = structs.replace(slot, late=late)
        _bound(draft, slot)
    elif slot.lease is not None and facts.leases[slot.lease].owner == OWNER:
        let_go(draft, [slot], FREE, "released")
    return draft.changes


def _bound(draft: Draft, slot: Slot) -> None:
    """Let the lease on a slot end by itself: the release may have been its own, the only one."""
    lease = None if slot.lease is None else draft.facts.leases[slot.lease]
    if lease is not None and lease.owner == OWNER and lease.ttl is None and not lease.hold_until:
        draft.put(structs.replace(lease, hold_until=Instant(draft.moment.at + LATE)))


def _numbered(draft: Draft, key: LeaseId, name: str) -> None:
    lease = draft.facts.leases.get(key)
    if lease is None or lease.owner != OWNER or lease.slots:  # those have names of their own
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
    draft.vacate(need.pool, 1, 1, "released")
    draft.put(structs.replace(lease, needs=(left,), labels=labels))
