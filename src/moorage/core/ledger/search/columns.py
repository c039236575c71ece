"""The numbers and marks of many providers: one numpy array per figure, one row per provider."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.capacity import capacity, fits, free, units_ok
from moorage.core.ledger.model import Inventory

Mask = NDArray[np.bool_]
"""One truth value per row."""

FIGURES = ("total", "reserved", "allocation_ratio", "used", "min_unit", "max_unit", "step_size")
"""The figures of an inventory that the capacity rule reads."""

ABSENT = (0, 0, 0.0, 0, 1, 0, 1)
"""What stands in a row without inventory: nothing may be asked of it, as max_unit is 0."""


class Column:
    """All inventories of one resource class. `count` rows have one."""

    __slots__ = (*FIGURES, "count")

    def __init__(self, size: int) -> None:
        self.count = 0
        for name, absent in zip(FIGURES, ABSENT, strict=True):
            setattr(self, name, np.full(size, absent))

    total: NDArray[np.int64]
    reserved: NDArray[np.int64]
    allocation_ratio: NDArray[np.float64]
    used: NDArray[np.int64]
    min_unit: NDArray[np.int64]
    max_unit: NDArray[np.int64]
    step_size: NDArray[np.int64]

    def put(self, row: int, inventory: Inventory) -> None:
        """Write the figures of one row; the caller keeps `count`."""
        self.total[row] = inventory.total
        self.reserved[row] = inventory.reserved
        self.allocation_ratio[row] = inventory.allocation_ratio
        self.used[row] = inventory.used
        self.min_unit[row] = inventory.min_unit
        self.max_unit[row] = inventory.max_unit
        self.step_size[row] = inventory.step_size

    def drop(self, row: int) -> None:
        """Let the row have no inventory; the caller keeps `count`."""
        for name, absent in zip(FIGURES, ABSENT, strict=True):
            getattr(self, name)[row] = absent

    def figures(self, row: int) -> tuple[Any, ...]:
        """Return what stands in the row, in the order of `FIGURES`."""
        return tuple(getattr(self, name)[row].item() for name in FIGURES)

    def can_give(self, amount: int) -> Mask:
        """Which rows can give `amount` (at least 1) in one piece, as they are used now?"""
        return self.has_room(amount) & self.admits(amount)

    def offers(self) -> Mask:
        """Which rows have an inventory of this class?"""
        mask: Mask = self.max_unit != ABSENT[FIGURES.index("max_unit")]
        return mask

    def has_room(self, amount: int) -> Mask:
        """In which rows do `amount` more units fit beside the used ones?"""
        mask: Mask = fits(self.total, self.reserved, self.allocation_ratio, self.used, amount)
        return mask

    def admits(self, amount: int) -> Mask:
        """In which rows do the unit sizes allow `amount` in one piece?"""
        mask: Mask = units_ok(self.min_unit, self.max_unit, self.step_size, amount)
        return mask

    def capacities(self) -> NDArray[np.float64]:
        """Return how many units may be allocated in each row, in all."""
        units: NDArray[np.float64] = capacity(self.total, self.reserved, self.allocation_ratio)
        return units

    def free(self) -> NDArray[np.float64]:
        """Return how many units are left in each row."""
        units: NDArray[np.float64] = free(
            self.total, self.reserved, self.allocation_ratio, self.used
        )
        return units

    def grow(self, size: int) -> None:
        """Add empty rows up to `size`."""
        for name, absent in zip(FIGURES, ABSENT, strict=True):
            old = getattr(self, name)
            new = np.full(size, absent, dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)


class Marks:
    """Which rows have which names: a mask per trait, or per aggregate. Unused names are dropped."""

    __slots__ = ("_counts", "masks", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.masks: dict[str, Mask] = {}
        self._counts: dict[str, int] = {}

    def change(self, row: int, before: frozenset[str], after: frozenset[str]) -> None:
        """Let the row, which had the names `before`, have the names `after`."""
        for name in before - after:
            self.masks[name][row] = False
            self._counts[name] -= 1
            if not self._counts[name]:
                del self.masks[name], self._counts[name]
        for name in after - before:
            mask = self.masks.get(name)
            if mask is None:
                mask = self.masks[name] = np.zeros(self.size, dtype=np.bool_)
                self._counts[name] = 0
            mask[row] = True
            self._counts[name] += 1

    def any_of(self, names: frozenset[str]) -> Mask | None:
        """Which rows have at least one of the names? None: no row. Do not change the answer."""
        found = [self.masks[name] for name in names if name in self.masks]
        if len(found) < 2:
            return found[0] if found else None
        mask: Mask = np.logical_or.reduce(found)
        return mask

    def names(self, row: int) -> frozenset[str]:
        """Return the names that the row has."""
        return frozenset(name for name, mask in self.masks.items() if mask[row])

    def grow(self, size: int) -> None:
        """Add rows without names up to `size`."""
        for name, old in self.masks.items():
            self.masks[name] = np.zeros(size, dtype=np.bool_)
            self.masks[name][: self.size] = old
        self.size = size
