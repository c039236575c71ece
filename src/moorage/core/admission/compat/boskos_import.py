"""Slots take over the states, owners and user data of Boskos' resources.

An owned resource becomes a lease, as if its owner had acquired it here; it counts as silent since
the owner's last update there. Importing the same resources again changes nothing.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, structs

from moorage.core.admission.compat.boskos import AcquireRequest, arrive, check_owner
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Pool, Slot
from moorage.core.admission.pools import not_found
from moorage.core.admission.slots import slot_new
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import (
    IDENTIFIER_LENGTH_MAX,
    KEY_LENGTH_MAX,
    SLOTS_MAX,
    USER_DATA_LENGTH_MAX,
)
from moorage.core.service_time import Moment
from moorage.core.texts import check_plain, check_segment


class Resource(Struct, frozen=True):
    """A resource of Boskos. Times are by the wall clock."""

    name: str
    state: str
    owner: str
    """Empty: it is free."""
    user_data: dict[str, str]
    updated_at: Instant
    expires_at: Instant | None


class Outcome(StrEnum):
    """The result for one slot."""

    IMPORTED = "imported"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    KEPT = "kept"
    REFUSED = "refused"


class Outcomes(Struct, frozen=True):
    """The results by the names of slots, and why slots are kept or refused."""

    found: dict[str, Outcome]
    reasons: dict[str, str]


def take_over(
    facts: Facts,
    moment: Moment,
    wall: Instant,
    pool: str,
    resources: Iterable[Resource],
    fresh: Iterable[LeaseId],
) -> tuple[Changes, Outcomes]:
    """Make the slots of a pool as the resources of its type are; each on its own.

    Args:
        facts: with the pool, and with slots of these names in any pool.
        moment: now.
        wall: now.
        pool: the type.
        resources: all of it.
        fresh: identifiers for leases, one for each resource.

    Raises POOL_NOT_FOUND, INVALID for a pool that does not follow Boskos' configuration or for a
    resource that is named twice, LIMIT_EXCEEDED.
    """
    found = facts.pools.get(pool)
    if found is None:
        raise not_found(pool)
    if found.spec.limit is not None or found.spec.native_slots:
        raise Error(
            Code.INVALID,
            f"'{pool}' has no slots of Boskos: name it in Boskos' configuration first.",
        )
    wanted = list(resources)
    names = {one.name for one in wanted}
    if len(wanted) > SLOTS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"a pool has at most {SLOTS_MAX:,} slots.")
    if len(names) < len(wanted):
        raise Error(Code.INVALID, "resources must name each resource once.")
    import_ = _Import(Draft(facts, moment, wall), found)
    for one, lease in zip(wanted, fresh, strict=False):
        import_.take(one, lease)
    import_.others(names)
    return import_.draft.changes, import_.outcomes


class _Import:
    """The changes and outcomes so far."""

    def __init__(self, draft: Draft, pool: Pool) -> None:
        self.draft = draft
        self.pool = pool
        self.outcomes = Outcomes({}, {})

    def take(self, one: Resource, lease: LeaseId) -> None:
        """Take over one resource, or say why not."""
        try:
            before = self._slot_before(one)
        except Error as error:
            self.outcomes.found[one.name] = Outcome.REFUSED
            self.outcomes.reasons[one.name] = str(error)
            return
        if before is not None and self._is_met(before, one):
            self.outcomes.found[one.name] = Outcome.UNCHANGED
            return
        self.outcomes.found[one.name] = Outcome.IMPORTED
        slot = before or slot_new(self.pool.name, one.name, one.state, self.draft.wall, True)
        self.draft.changes.slots[slot.pool, slot.name] = taken = self._taken(slot, one)
        if one.owner and not slot.occupied:
            self._hold(taken, one, lease)

    def others(self, names: set[str]) -> None:
        """Remove what the growing pool has made for nobody before the import."""
        growth = self.pool.growth
        for name, slot in self.draft.facts.slots.get(self.pool.name, {}).items():
            if name in names:
                continue
            is_unused = growth is not None and slot.dynamic and slot.state == growth.state
            if is_unused and not (slot.occupied or slot.user_data or slot.expires_at):
                self.draft.changes.slots[slot.pool, name] = None
                self.outcomes.found[name] = Outcome.REMOVED
            else:
                self.outcomes.found[name] = Outcome.KEPT
                self.outcomes.reasons[name] = "Boskos does not have it."

    def _slot_before(self, one: Resource) -> Slot | None:
        """Return the slot that takes over a resource; None: one is to be made. Raises `Error`."""
        _check(one)
        for pool, slots in self.draft.facts.slots.items():
            if pool != self.pool.name and one.name in slots:
                raise Error(Code.SLOT_EXISTS, f"It is a slot of '{pool}'.")
        slot = self.draft.facts.slots.get(self.pool.name, {}).get(one.name)
        if slot is None and self.pool.growth is None:
            raise Error(
                Code.SLOT_NOT_FOUND,
                "Boskos' configuration does not name it: add it there, then import it again.",
            )
        if slot is not None and slot.occupied and slot.owner != one.owner:
            raise Error(Code.HOLDER_MISMATCH, f"'{slot.owner}' holds it here.")
        return slot

    def _is_met(self, slot: Slot, one: Resource) -> bool:
        """Is a slot as Boskos says? That of a holder may have been updated since."""
        as_there = (slot.owner, slot.state, slot.user_data, slot.expires_at)
        wanted = (one.owner, one.state, one.user_data, one.expires_at)
        return as_there == wanted and (slot.occupied or slot.updated_at == self._updated_at(one))

    def _updated_at(self, one: Resource) -> Instant:
        return min(one.updated_at, self.draft.wall)  # its clock may be ahead of ours

    def _taken(self, slot: Slot, one: Resource) -> Slot:
        return structs.replace(
            slot,
            state=one.state,
            user_data=dict(one.user_data),
            updated_at=self._updated_at(one),
            expires_at=one.expires_at,
        )

    def _hold(self, slot: Slot, one: Resource, lease: LeaseId) -> None:
        """Give a slot to its owner; it has been silent since its last update."""
        draft, moment = self.draft, self.draft.moment
        request = AcquireRequest(slot.pool, slot.state, slot.state, one.owner, "", lease, slot.name)
        draft.grant(arrive(draft, request, str(lease), 0), [slot])
        held = draft.changes.slots[slot.pool, slot.name]
        assert held is not None  # it was granted just now
        draft.changes.slots[slot.pool, slot.name] = structs.replace(
            held,
            updated_at=slot.updated_at,
            heard_at=Instant(moment.alive - (draft.wall - slot.updated_at)),
        )


def _check(one: Resource) -> None:
    """Raise INVALID or LIMIT_EXCEEDED for what no slot can have."""
    check_segment("A resource's name", one.name, KEY_LENGTH_MAX)
    check_owner(one.owner)
    check_plain("A state", one.state)
    if not 1 <= len(one.state) <= IDENTIFIER_LENGTH_MAX:
        raise Error(Code.INVALID, f"A state must have 1 to {IDENTIFIER_LENGTH_MAX} characters.")
    if sum(len(key) + len(value) for key, value in one.user_data.items()) > USER_DATA_LENGTH_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED, f"User data have at most {USER_DATA_LENGTH_MAX} characters."
        )
