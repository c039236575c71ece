"""THE capacity rule. Claims, candidates, reshape and listings call it; nothing else computes it.

An agent's report, and a withheld provider, limit placements, but not the records of a reshape.
Functions with `Any` work on plain numbers and on numpy columns, hence `&` instead of `and`.
Source: Placement API reference, "Update resource provider inventory"; decision 0025.
"""

from math import ceil
from typing import Any

from moorage.core.ledger.model import Inventory
from moorage.core.limits import MAX_INT


def capacity(total: float, reserved: float, allocation_ratio: float) -> float:
    """Return how many units may be allocated in total if all of it is offered, not rounded."""
    return (total - reserved) * allocation_ratio


def total_for(used: int, reserved: int, allocation_ratio: float) -> int | None:
    """Return the smallest total that has room for `used` units; None: no total has."""
    if used <= 0:
        return reserved
    if not allocation_ratio > 0 or used / allocation_ratio > MAX_INT:
        return None
    near = ceil(used / allocation_ratio)  # the division rounds: it may be one too small or large
    enough = (units for units in (near - 1, near) if capacity(units, 0, allocation_ratio) >= used)
    return next(enough, near + 1) + reserved


def capacity_of(inventory: Inventory) -> float:
    """Return how many units of one stored inventory may be allocated in total, not rounded."""
    total, offered = inventory.total, inventory.offered
    if inventory.withheld:
        return 0.0
    if offered is None:
        return capacity(total, inventory.reserved, inventory.allocation_ratio)
    given = min(total, offered)
    return capacity(max(given, inventory.reserved), inventory.reserved, inventory.allocation_ratio)


def units_ok(min_unit: Any, max_unit: Any, step_size: Any, amount: Any) -> Any:
    """May `amount` be allocated in one piece?"""
    return (min_unit <= amount) & (amount <= max_unit) & (amount % step_size == 0)


def has_room(inventory: Inventory, amount: int) -> bool:
    """Does one stored inventory have room for `amount` more units?"""
    return inventory.used + amount <= capacity_of(inventory)


def may_record(inventory: Inventory, amount: int) -> bool:
    """May `amount` more units be recorded that exist already, whatever is offered now?"""
    whole = capacity(inventory.total, inventory.reserved, inventory.allocation_ratio)
    return inventory.used + amount <= whole


def admits(inventory: Inventory, amount: int) -> bool:
    """Do the unit sizes of one stored inventory allow `amount` in one piece?"""
    return bool(units_ok(inventory.min_unit, inventory.max_unit, inventory.step_size, amount))


def shown_capacity(inventory: Inventory) -> int:
    """Return the capacity that clients see: rounded towards zero."""
    return int(capacity_of(inventory))


def largest(inventory: Inventory) -> int:
    """Return the largest amount that one stored inventory has room for in one piece; 0: none.

    `min_unit` and `step_size` may still forbid it.
    """
    return largest_piece(shown_capacity(inventory), inventory.used, inventory.max_unit)


def largest_piece(units: int, used: int, max_unit: int) -> int:
    """Return the largest amount left in one piece, given a capacity in whole units; 0: none.

    `min_unit` and `step_size` may still forbid it.
    """
    left = units - used
    if left > max_unit:
        return max_unit
    return left if left > 0 else 0


def divisor(whole: float) -> float:
    """Return the divisor of used units that gives the fullness of a capacity: at least 1."""
    return max(whole, 1.0)
