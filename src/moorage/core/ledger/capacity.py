"""THE capacity rule. Claims, candidates, reshape and listings call it; nothing else computes it.

Functions with `Any` work on plain numbers and on numpy columns, hence `&` instead of `and`.
Source: Placement API reference, "Update resource provider inventory".
"""

from typing import Any

from moorage.core.ledger.model import Inventory


def capacity(total: Any, reserved: Any, allocation_ratio: Any) -> Any:
    """Return how many units may be allocated in total, not rounded."""
    return (total - reserved) * allocation_ratio


def fits(total: Any, reserved: Any, allocation_ratio: Any, used: Any, amount: Any) -> Any:
    """Is there room for `amount` more units besides the `used` ones?"""
    return used + amount <= capacity(total, reserved, allocation_ratio)


def units_ok(min_unit: Any, max_unit: Any, step_size: Any, amount: Any) -> Any:
    """May `amount` be allocated in one piece?"""
    return (min_unit <= amount) & (amount <= max_unit) & (amount % step_size == 0)


def has_room(inventory: Inventory, amount: int) -> bool:
    """Does one stored inventory have room for `amount` more units?"""
    return bool(
        fits(
            inventory.total,
            inventory.reserved,
            inventory.allocation_ratio,
            inventory.used,
            amount,
        )
    )


def admits(inventory: Inventory, amount: int) -> bool:
    """Do the unit sizes of one stored inventory allow `amount` in one piece?"""
    return bool(units_ok(inventory.min_unit, inventory.max_unit, inventory.step_size, amount))


def shown_capacity(inventory: Inventory) -> int:
    """Return the capacity that clients see: rounded towards zero."""
    return int(capacity(inventory.total, inventory.reserved, inventory.allocation_ratio))


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
