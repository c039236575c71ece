"""Pools that make slots by themselves: for whoever waits, up to as many as they may have."""

from uuid import NAMESPACE_OID, uuid5

from moorage.core.admission.draft import Draft
from moorage.core.admission.model import Lease, Need, Pool
from moorage.core.admission.roster import slot_new


def grow(draft: Draft, ticket: Lease) -> None:
    """Make the slots that a ticket lacks, which has just come to stand in its lines.

    One at least for everybody before it, as a growing type of Boskos makes one for each request.
    Slots come in the state that their pool says: somebody may have to work on them first.
    """
    for need in ticket.needs:
        pool = draft.pool(need.pool)
        if pool.growth is None:
            continue
        for n in range(_lacking(draft, pool, need)):
            name = str(uuid5(NAMESPACE_OID, f"{ticket.id}/{pool.name}/{need.state}/{n}"))
            slot = slot_new(pool.name, name, pool.growth.state, draft.wall, dynamic=True)
            draft.changes.slots[pool.name, name] = slot


def _lacking(draft: Draft, pool: Pool, need: Need) -> int:
    """Return how many slots to make for a need: as many as are missing and there may be."""
    assert pool.growth is not None  # the caller's choice
    slots = dict(draft.facts.slots.get(pool.name, {}))
    slots |= {
        name: one for (of, name), one in draft.changes.slots.items() if of == pool.name and one
    }
    coming = {need.state, pool.growth.state}
    idle = sum(not slot.owner and slot.state in coming for slot in slots.values())
    before = pool.awaited.get(need.state, 0) - 1
    return max(0, min(need.units + before - idle, pool.growth.most - len(slots)))
