"""Makes an inventory of the numbers that the original's database or API has."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.values import integer_of, ratio_of
from moorage.wire.imports import InventoryRow


def inventory_of(
    values: Sequence[Any], times: tuple[datetime, datetime], oddities: Oddities, what: str
) -> InventoryRow | None:
    """Return an inventory; None: a number of it cannot be kept.

    `values`: total, reserved, min_unit, max_unit, step_size and allocation_ratio.
    """
    least = (0, 0, 1, 1, 1)
    *numbers, ratio = values
    good = [integer_of(number, low) for number, low in zip(numbers, least, strict=True)]
    multiple = ratio_of(ratio)
    total, reserved, min_unit, max_unit, step_size = good
    if (
        total is None
        or reserved is None
        or min_unit is None
        or max_unit is None
        or step_size is None
        or multiple is None
    ):
        oddities.note("inventory_invalid", f"{what}: {', '.join(map(_shown, values))}")
        return None
    if reserved > total:
        oddities.note("reserved_over_total", f"{what}: {reserved} of {total}")
    if min_unit > max_unit:
        oddities.note("unit_bounds_crossed", f"{what}: {min_unit}, {max_unit}")
    at, changed = times
    return InventoryRow(
        total=total,
        reserved=reserved,
        min_unit=min_unit,
        max_unit=max_unit,
        step_size=step_size,
        allocation_ratio=multiple,
        created_at=at,
        updated_at=changed,
    )


def _shown(value: Any) -> str:
    """Return a number for people; Python writes no integer of more than 4,300 digits."""
    try:
        return str(value)
    except ValueError:
        return "a number of thousands of digits"
