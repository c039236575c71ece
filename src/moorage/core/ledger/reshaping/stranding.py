"""Which waiting tickets ask for units that a plan takes away: nobody else would say so.

A ticket names places. When its units move elsewhere, it does not follow them: the one who asked
decides whether the new place will do as well.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from moorage.core.counting import counted
from moorage.core.ids import ConsumerId, LeaseId
from moorage.core.ledger.capacity import capacity, units_ok
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping.effects import Effect, InventorySet
from moorage.core.ledger.reshaping.tenants import Note, NoteCode
from moorage.core.ledger.reshaping.wanted import Key
from moorage.core.limits import TICKETS_NAMED_MAX


class Ticket(Struct, frozen=True):
    """A waiting ticket, and the allocations that it asks for."""

    lease: LeaseId
    consumer: ConsumerId
    allocations: Allocations


def stranded(effects: Sequence[Effect], tickets: Iterable[Ticket], more: bool) -> Note | None:
    """Return the note about tickets that could be granted now or later, and never after a plan.

    Args:
        effects: of the plan.
        tickets: those that ask for anything of a provider whose inventories change.
        more: whether there are more of these.
    """
    changed = {
        (one.provider, one.resource_class): (one.before, one.after)
        for one in effects
        if isinstance(one, InventorySet)
    }
    found: dict[ConsumerId, LeaseId | None] = {}
    first: Key | None = None
    count = 0
    for ticket in tickets:
        lost = next((key for key in sorted(_asked(ticket)) if _is_lost(ticket, key, changed)), None)
        if lost is not None:
            first, count = first or lost, count + 1
            if count <= TICKETS_NAMED_MAX:
                found[ticket.consumer] = ticket.lease
    if first is None:
        return None
    text = (
        f"{'At least ' if more else ''}{counted(count, 'waiting ticket')} would wait in vain: what"
        f" they ask for would not be there any more, such as {first[1]} of provider {first[0]}."
        " To get the units at their new place, ask again."
    )
    return Note(NoteCode.TICKETS_STRANDED, text, found)


def _asked(ticket: Ticket) -> Iterable[Key]:
    return ((uuid, name) for uuid, amounts in ticket.allocations.items() for name in amounts)


def _is_lost(
    ticket: Ticket,
    key: Key,
    changed: dict[Key, tuple[InventorySpec | None, InventorySpec | None]],
) -> bool:
    """Return whether a ticket could have what it asks for at a place before, and not after it."""
    before, after = changed.get(key, (None, None))
    amount = ticket.allocations[key[0]][key[1]]
    return _admits(before, amount) and not _admits(after, amount)


def _admits(spec: InventorySpec | None, amount: int) -> bool:
    """Return whether an inventory has room for an amount once nobody uses it."""
    return (
        spec is not None
        and units_ok(spec.min_unit, spec.max_unit, spec.step_size, amount)
        and amount <= capacity(spec.total, spec.reserved, spec.allocation_ratio)
    )
