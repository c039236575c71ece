"""Pools that make slots by themselves: for whoever waits, up to as many as they may have."""

from collections.abc import Collection
from uuid import NAMESPACE_OID, uuid5

from moorage.core.admission.draft import Draft
from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.admission.roster import slot_new
from moorage.core.admission.units import lacking, units_by_pool


def grow(draft: Draft, ticket: Lease) -> None:
    """Make the slots that are lacking now that a ticket has come to stand in its lines.

    They come in the state that their pool says: somebody may have to work on them first.
    """
    for name in units_by_pool(ticket.needs):
        pool = draft.pool(name)
        if pool.growth is None:
            continue
        for n in range(lacking(pool, _slots(draft, pool))):
            fresh = str(uuid5(NAMESPACE_OID, f"{ticket.id}/{name}/{n}"))
            slot = slot_new(name, fresh, pool.growth.state, draft.wall, dynamic=True)
            draft.changes.slots[name, fresh] = slot


def _slots(draft: Draft, pool: Pool) -> Collection[Slot]:
    slots = dict(draft.facts.slots.get(pool.name, {}))
    for (of, name), slot in draft.changes.slots.items():
        if of == pool.name and slot is not None:
            slots[name] = slot
    return slots.values()
