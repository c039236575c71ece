"""How much of an inventory the original gives away, and how ours gives as much there."""

from dataclasses import replace

from moorage.integrations.placement.oddities import Oddities
from moorage.wire.imports import InventoryRow
from moorage.wire.providers import InventoryShown


def capacity_there(inventory: InventoryRow | InventoryShown) -> int:
    """Return how many units may be allocated in total. Source: Placement API reference."""
    return int((inventory.total - inventory.reserved) * inventory.allocation_ratio)


def note_over_capacity(
    oddities: Oddities, provider: str, name: str, inventory: InventoryRow, used: int
) -> None:
    """Add an inventory of which more is allocated than there is."""
    most = capacity_there(inventory)
    if used > most:
        oddities.note("over_capacity", f"provider {provider}, {name}: {used} of {most}")


def not_offered(inventory: InventoryShown, *, withheld: bool) -> int:
    """Return how many units above the reserved ones are there, but are not offered."""
    there = max(inventory.total - inventory.reserved, 0)
    if withheld:
        return there
    if inventory.offered is None:
        return 0
    given = max(min(inventory.total, inventory.offered) - inventory.reserved, 0)
    return there - given


def as_offered(inventory: InventoryRow, closed: int) -> InventoryRow:
    """Return an inventory whose capacity is what is offered: the rest of it is reserved."""
    return replace(inventory, reserved=inventory.reserved + closed)
