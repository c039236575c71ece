"""Pools that make slots for waiting tickets, up to their `Growth.most`."""

from uuid import NAMESPACE_OID, uuid5

from moorage.core.admission.draft import Draft
from moorage.core.admission.model import Lease
from moorage.core.admission.slot_config import slot_new
from moorage.core.admission.units import lacking, units_by_pool


def grow(draft: Draft, ticket: Lease) -> None:
    """Make the slots that are missing after a ticket has joined its lines.

    They start in the pool's `Growth.state`: a client may have to prepare them first.
    """
    for name in units_by_pool(ticket.needs):
        pool = draft.pool(name)
        if pool.growth is None:
            continue
        for n in range(lacking(pool, draft.slots(name).values())):
            fresh = str(uuid5(NAMESPACE_OID, f"{ticket.id}/{name}/{n}"))
            slot = slot_new(name, fresh, pool.growth.state, draft.wall, dynamic=True)
            draft.changes.slots[name, fresh] = slot
