"""Operations for callers that know a slot's name and owner: release, update, reset.

The check is that of Boskos: the given owner is trusted. Therefore the operations apply only to
leases made through Boskos or the lease proxy, unless `native` permits all. A lease with several
slots keeps the others.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from moorage.core.admission.draft import Draft
from moorage.core.admission.expiry import confirm, known
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import FREE, Cause, Lease, Need, Slot
from moorage.core.admission.owners import BOSKOS, LEASE_PROXY, is_foreign
from moorage.core.admission.slots import LeaseEnd, freed
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import USER_DATA_LENGTH_MAX
from moorage.core.service_time import Moment


def slot_named(facts: Facts, name: str) -> Slot | None:
    """Return the slot with this name from any pool; names are unique across pools."""
    for slots in facts.slots.values():
        if name in slots:
            return slots[name]
    return None


def is_own(facts: Facts, slot: Slot) -> bool:
    """Is a slot free, or occupied through Boskos or the lease proxy, not by a native lease?"""
    lease = None if slot.lease is None else facts.leases[slot.lease]
    return lease is None or is_foreign(lease.owner)


def release(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    name: str,
    dest: str,
    owner: str,
    *,
    native: bool = False,
) -> Changes:
    """Release one slot into the state `dest`.

    One that was acquired through the lease proxy is revoked: its caller will also release it there,
    perhaps when another lease has it.
    Raises SLOT_NOT_FOUND, HOLDER_MISMATCH.
    """
    slot = _owned(facts, name, owner, native)
    draft = Draft(facts, moment, wall)
    if slot.lease is not None and facts.leases[slot.lease].owner == LEASE_PROXY:
        let_go(draft, [slot], dest, "revoked", "released through Boskos")
    else:
        let_go(draft, [slot], dest, "released")
    return draft.changes


def update(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    name: str,
    owner: str,
    state: str,
    user_data: Mapping[str, str],
    *,
    native: bool = False,
) -> Changes:
    """Record that a holder is alive; merge its user data, where an empty value removes a key.

    Raises SLOT_NOT_FOUND, HOLDER_MISMATCH, SLOT_STATE, LIMIT_EXCEEDED.
    """
    slot = _owned(facts, name, owner, native)
    if slot.state != state:
        raise Error(Code.SLOT_STATE, f"state mismatch - expected {slot.state}, current {state}")
    merged = {**slot.user_data, **user_data}
    kept = {key: value for key, value in merged.items() if value or key not in user_data}
    if sum(len(key) + len(value) for key, value in kept.items()) > USER_DATA_LENGTH_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED, f"user data have at most {USER_DATA_LENGTH_MAX} characters"
        )
    touched = structs.replace(slot, user_data=kept, updated_at=wall, heard_at=moment.alive)
    changes = Changes() if slot.lease is None else confirm(facts, moment, slot.lease)
    changes.slots[slot.pool, slot.name] = touched
    return changes


def reset(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    pool: str,
    state: str,
    expire: int,
    dest: str,
    *,
    native: bool = False,
) -> tuple[Changes, dict[str, str]]:
    """Free every slot of a type and state whose holder was silent for `expire` nanoseconds.

    Also returns their former owners by slot name. A lease that needs no renewal, and was not made
    through Boskos, never counts as silent.
    """
    stale = []
    for slot in facts.slots.get(pool, {}).values():
        if slot.owner and slot.state == state and (native or is_own(facts, slot)):
            silence = _silence(facts, moment, wall, slot)
            if silence is not None and silence * 1_000 >= expire:
                stale.append(slot)
    draft = Draft(facts, moment, wall)
    let_go(draft, stale, dest, "revoked", "reset through Boskos: not updated for too long")
    return draft.changes, {slot.name: slot.owner for slot in stale}


def _silence(facts: Facts, moment: Moment, wall: Instant, slot: Slot) -> int | None:
    """Return for how many microseconds the holder of a slot has been silent; None: does not apply.

    For Boskos' clients, changes of the slot count, in whole seconds as Boskos shows them; for other
    leases renewals count, too. Jumps of the wall clock and outages of this service do not count as
    silence.
    """
    fraction = slot.updated_at % SECOND
    touched = wall - slot.updated_at + fraction
    if slot.heard_at is not None:
        touched = min(touched, moment.alive - slot.heard_at + fraction)
    lease = None if slot.lease is None else facts.leases[slot.lease]
    if lease is None or lease.owner.startswith(BOSKOS):
        return touched
    if lease.ttl is None or lease.heard_until is None:
        return None
    return min(touched, moment.alive - (lease.heard_until - lease.ttl))


class Counts(Struct, frozen=True):
    """Numbers of slots of a type by state and by owner ("" for free ones)."""

    states: dict[str, int]
    owners: dict[str, int]


def counts(slots: Iterable[Slot]) -> Counts:
    """Count slots by state and by owner."""
    found = Counts({}, {})
    for slot in slots:
        found.states[slot.state] = found.states.get(slot.state, 0) + 1
        found.owners[slot.owner] = found.owners.get(slot.owner, 0) + 1
    return found


def let_go(draft: Draft, slots: Iterable[Slot], state: str, cause: Cause, detail: str = "") -> None:
    """Free slots; a lease that has none left ends."""
    by_lease: dict[LeaseId, list[Slot]] = {}
    for slot in slots:
        if slot.lease is not None:
            by_lease.setdefault(slot.lease, []).append(slot)
    for key, given in by_lease.items():
        lease = draft.facts.leases[key]
        if len(given) < sum(map(len, lease.slots.values())):
            _part(draft, lease, given, state, cause)
        else:
            draft.end(lease, cause, detail, {slot.pool: state for slot in given})


def _owned(facts: Facts, name: str, owner: str, native: bool) -> Slot:
    slot = slot_named(facts, name)
    if slot is None:
        raise Error(Code.SLOT_NOT_FOUND, f"no available resource {name}, try again later.")
    if slot.owner != owner:
        raise Error(
            Code.HOLDER_MISMATCH,
            f"owner mismatch request by {owner}, currently owned by {slot.owner}",
        )
    if not native and not is_own(facts, slot):
        raise Error(
            Code.HOLDER_MISMATCH,
            f"owner mismatch request by {owner}, currently owned by {slot.owner} by a native lease",
        )
    return slot


def _part(draft: Draft, lease: Lease, slots: list[Slot], state: str, cause: Cause) -> None:
    """Free some slots of a lease, which keeps the others."""
    needs, names = list(lease.needs), dict(lease.slots)
    end = LeaseEnd(draft.moment, draft.wall, cause)
    for slot in slots:
        pool = draft.pool(slot.pool)
        draft.changes.slots[slot.pool, slot.name] = freed(slot, lease, pool, end, state)
        draft.vacate(pool, lease, 1, int(state == FREE), cause)
        names[slot.pool] = tuple(name for name in names[slot.pool] if name != slot.name)
        needs = _one_less(needs, slot)
    left = structs.replace(
        lease,
        needs=tuple(needs),
        slots={pool: held for pool, held in names.items() if held},
    )
    draft.put(known(left, draft.moment))


def _one_less(needs: list[Need], slot: Slot) -> list[Need]:
    """Subtract one unit from a lease's needs: from one with that pool and, if possible, state."""
    own = [need for need in needs if need.pool == slot.pool]
    one = next((need for need in own if need.dest == slot.state), own[0])
    left = structs.replace(one, units=one.units - 1)
    return [left if need is one else need for need in needs if need is not one or left.units]
