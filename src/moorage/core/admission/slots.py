"""Named units of a pool: which is granted next, what a grant and an end make of them.

A slot is held when it has an owner; then its lease is live, and no live lease holds other slots
than those that say so. The slot that has rested longest is granted first, ties by name.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, Lease, Pool, Slot
from moorage.core.clock import Instant

BOSKOS = "boskos:"
"""Before the owner's name, the owner of a lease that was taken through the Boskos face."""

Slots = dict[tuple[str, str], Slot | None]
"""After-images by pool and name, as `Changes.slots` has them."""


def slot_owner(owner: str) -> str:
    """Return how the owner of a lease is named on the slots that it holds."""
    return owner.removeprefix(BOSKOS)


def free(slots: Iterable[Slot], state: str = FREE) -> list[Slot]:
    """Return the slots that nobody holds and that are in this state, the longest rested first."""
    found = [slot for slot in slots if not slot.owner and slot.state == state]
    return sorted(found, key=lambda slot: (slot.updated_at, slot.name))


def occupied(wall: Instant, lease: Lease, slots: Iterable[Slot], dest: str) -> Slots:
    """Return these slots as they are in the hands of a lease."""
    owner = slot_owner(lease.owner)
    return {
        (slot.pool, slot.name): structs.replace(
            slot, owner=owner, lease=lease.id, state=dest, updated_at=wall
        )
        for slot in slots
    }


def named(slots: Slots) -> dict[str, tuple[str, ...]]:
    """Return the names of slots by pool, sorted: the form of `Lease.slots`."""
    found: dict[str, tuple[str, ...]] = {}
    for pool, name in sorted(slots):
        found[pool] = (*found.get(pool, ()), name)
    return found


def give_back(
    facts: Facts, wall: Instant, lease: Lease, states: Mapping[str, str] | None = None
) -> Slots:
    """Take from a lease all slots that it holds.

    Args:
        facts: in which the lease holds them.
        wall: now.
        lease: that ends.
        states: what the slots of a pool become; `FREE` where nothing is said.
    """
    held = [slot for slot in facts.slots_of(lease.slots) if slot.lease == lease.id]
    states = states or {}
    return {
        (slot.pool, slot.name): freed(
            slot, facts.pools.get(slot.pool), wall, states.get(slot.pool, FREE)
        )
        for slot in held
    }


def freed(slot: Slot, pool: Pool | None, wall: Instant, state: str) -> Slot:
    """Return a slot as it is once its holder has let go of it.

    A slot of a growing pool is from now on to live no longer than the pool's lifespan; one of any
    other pool lives as long as its pool says.
    """
    growth = None if pool is None else pool.growth
    expires_at = None if growth is None else slot.expires_at
    if growth is not None and growth.lifespan is not None:
        expires_at = Instant(wall + growth.lifespan)
    return structs.replace(
        slot, owner="", lease=None, state=state, updated_at=wall, expires_at=expires_at
    )
