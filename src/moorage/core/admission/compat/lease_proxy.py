"""Leases of the lease proxy: they are not renewed, and their units are released singly by name.

Units of a pool with slots have the slots' names; others are named by the lease and a number.
A slot's name does not identify the lease that is released, see `late_releases.py`.
"""

import re

from msgspec import structs

from moorage.core.admission.compat.slots_by_name import let_go, slot_named
from moorage.core.admission.draft import Draft
from moorage.core.admission.expiry import known
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.late_releases import LATE, is_over, settled, taken
from moorage.core.admission.model import FREE, Lease, Slot, is_unconfirmed
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.requests import lease_of as found_lease
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId, is_normal
from moorage.core.limits import DETAIL_LENGTH_MAX
from moorage.core.service_time import Moment

RETURNED = "returned"
"""The label that lists the released numbered units."""

_NUMBERED = re.compile(r"(?P<lease>[0-9a-f-]{36})\.(?P<number>[0-9]{1,9})")


def names_of(lease: Lease) -> list[str]:
    """Return the names of all units of a lease."""
    if lease.slots:
        return [name for _, names in sorted(lease.slots.items()) for name in names]
    return [f"{lease.id}.{n}" for n in range(sum(need.units for need in lease.needs))]


def lease_of(name: str) -> LeaseId | None:
    """Return the lease of a numbered unit; None: this is the name of a slot."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not is_normal(found["lease"]):
        return None
    return LeaseId(found["lease"])


def give_back(facts: Facts, moment: Moment, wall: Instant, name: str) -> Changes:
    """Release one unit. Nothing changes if it is already released or has another owner.

    A late release by an earlier holder does not take the slot from the present one.

    Raises SLOT_NOT_FOUND: no such unit is known.
    """
    draft = Draft(facts, moment, wall)
    lease = lease_of(name)
    if lease is not None:
        _numbered(draft, lease, name)
        return draft.changes
    slot = slot_named(facts, name)
    if slot is None:
        raise Error(Code.SLOT_NOT_FOUND, f"no resource name {name}")
    holder = None if slot.lease is None else facts.leases[slot.lease]
    left = taken(slot, holder, moment.at)
    if left is not None:
        draft.changes.slots[slot.pool, slot.name] = left
        _bound(draft, slot)
    elif slot.lease is not None and facts.leases[slot.lease].owner == LEASE_PROXY:
        let_go(draft, [slot], FREE, "released")
    return draft.changes


def holder_gone(
    facts: Facts, moment: Moment, wall: Instant, lease: LeaseId, detail: str
) -> tuple[Changes, LeaseId]:
    """Revoke a lease whose holder is gone: it has not released its names, and never will.

    So no late release of them is expected of it, also if the lease has ended before. If a release
    counted as its own in the meantime, that was the present holder's, whose lease is over.

    Args:
        facts: with the lease, its pools, and every granted lease of these.
        moment: now.
        wall: wall-clock time, stored in slots.
        lease: to end.
        detail: why, for people.

    Raises LEASE_NOT_FOUND.
    """
    found, draft = found_lease(facts, lease), Draft(facts, moment, wall)
    over = []
    for slot in facts.slots_of({need.pool for need in found.needs}):
        left = settled(slot, lease, moment.at)
        if left is None:
            continue
        if is_over(slot, lease, moment.at):
            over.append(slot)
        else:
            draft.changes.slots[slot.pool, slot.name] = left
    if found.state != "ended":
        draft.end(found, "revoked", detail[:DETAIL_LENGTH_MAX], gone=True)
    let_go(draft, over, FREE, "released", f"its release had counted as that of {lease}")
    return draft.changes, lease


def _bound(draft: Draft, slot: Slot) -> None:
    """Bound the hold of a slot's lease: the release may have been its own, and the only one."""
    lease = None if slot.lease is None else draft.facts.leases[slot.lease]
    if lease is None or lease.owner != LEASE_PROXY or is_unconfirmed(lease):
        return
    if not lease.hold_until:
        draft.put(structs.replace(lease, hold_until=Instant(draft.moment.at + LATE)))


def _numbered(draft: Draft, key: LeaseId, name: str) -> None:
    lease = draft.facts.leases.get(key)
    if lease is None or lease.owner != LEASE_PROXY or lease.slots:  # slots have their own names
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
    draft.vacate(draft.pool(need.pool), lease, 1, 1, "released")
    kept = structs.replace(lease, needs=(left,), labels=labels)
    draft.put(known(kept, draft.moment))
