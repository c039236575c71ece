"""Figures and marks of many providers: one numpy array per figure, one row per provider."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.core.ledger.capacity import divisor, largest_piece, units_ok
from moorage.core.ledger.compact_inventories import InventoryFigures
from moorage.core.ledger.search.catalog.summaries import (
    ABSENT_READING,
    BUCKETS,
    FLOORS,
    NONE,
    Gauge,
    Reading,
    Uses,
    bucket,
    buckets,
    cells,
    grown,
)
from moorage.core.ledger.search.catalog.trees import Trees
from moorage.core.limits import MAX_INT

Mask = NDArray[np.bool_]
"""One boolean per row."""

Fullness = NDArray[np.float64]
"""The used part of the capacity: 0 nothing, 1 all of it."""

FIGURES = ("used", "capacity", "full", "largest", "min_unit", "max_unit", "step_size")
"""The stored figures of an inventory. `full`: its fullness, `largest`: the amount it can give."""

ABSENT = (0, 0.0, 0.0, 0, 1, 0, 1)
"""The figures of a row without inventory: it can give nothing, as max_unit is 0."""

_TYPES = (np.int64, np.float64, np.float64, np.int32, np.int32, np.int32, np.int32)

TREE_FOLLOWED_MAX = 16
"""The fullness of trees with more members is computed on demand, that of others at every change."""


class Column:
    """All inventories of one resource class in one chunk. `count` rows have one."""

    __slots__ = (
        *FIGURES,
        "_bucket_at",
        "_capacity_at",
        "_full_at",
        "_gauge",
        "_largest_at",
        "_slot",
        "_trees",
        "_units_at",
        "_used_at",
        "bucket",
        "count",
        "odd",
    )

    used: NDArray[np.int64]
    capacity: NDArray[np.float64]
    full: NDArray[np.float64]
    largest: NDArray[np.int32]
    min_unit: NDArray[np.int32]
    max_unit: NDArray[np.int32]
    step_size: NDArray[np.int32]

    def __init__(self, trees: Trees, gauge: Gauge, chunk: int) -> None:
        self.count = 0
        self.odd = 0
        """Rows whose `min_unit` or `step_size` is not 1."""
        size = len(trees.root)
        for name, absent, kind in zip(FIGURES, ABSENT, _TYPES, strict=True):
            setattr(self, name, np.full(size, absent, dtype=kind))
        self.bucket: NDArray[np.int8] = np.full(size, NONE, dtype=np.int8)
        self._trees = trees
        self._gauge = gauge
        self._slot = gauge.enter(chunk, self)
        self._look()

    def use(
        self, row: int, used: int, offer: InventoryFigures, single: bool, quietly: bool = False
    ) -> None:
        """Write the usage of a row whose other figures are those of the offer; see `put`.

        `single`: the row is a whole tree.
        """
        # Every claim calls this for each of its classes.
        before, at, full_before = self._largest_at[row], self._bucket_at[row], self._full_at[row]
        full = self._full_at[row] = used / offer.divisor
        piece = self._largest_at[row] = largest_piece(offer.units, used, offer.max_unit)
        self._used_at[row] = used
        after = at
        if not FLOORS[at] <= piece < FLOORS[at + 1]:
            after = self._bucket_at[row] = bucket(piece)
        if quietly:
            return
        if not single:
            self._tell(row, (before, at, full_before))
            return
        gauge, slot = self._gauge, self._slot
        highest, lowest = gauge.fullest_at[at, slot], gauge.emptiest_at[at, slot]
        if (
            after != at
            or not lowest < full_before < highest
            or not lowest <= full <= highest
            or before >= (most := gauge.most_at[slot])
            or piece > most
        ):
            gauge.move(slot, (before, at, full_before), (piece, after, full), True)

    def put(self, row: int, offer: InventoryFigures, used: int, quietly: bool = False) -> None:
        """Write the figures of one row.

        `quietly`: the summaries are updated later, by `settle`, for many rows at once.
        """
        piece = largest_piece(offer.units, used, offer.max_unit)
        figures = used, offer.capacity, used / offer.divisor, piece
        units = offer.min_unit, offer.max_unit, offer.step_size
        self._write(row, (*figures, *units), bucket(piece), quietly)

    def drop(self, row: int, quietly: bool = False) -> None:
        """Remove the inventory of a row."""
        self._write(row, ABSENT, NONE, quietly)

    def fill(
        self, rows: NDArray[np.integer], offer: InventoryFigures, used: NDArray[np.int64]
    ) -> None:
        """Write the figures of many rows that have none, like `put`. Call `settle` later."""
        self.used[rows] = used
        self.capacity[rows] = offer.capacity
        self.full[rows] = used / offer.divisor
        # As `largest_piece`; the minimum only avoids overflow, it is far above any `max_unit`.
        left = min(offer.units, 1 << 62) - used
        self.largest[rows] = np.clip(left, 0, offer.max_unit)
        self.bucket[rows] = buckets(self.largest[rows])
        self.min_unit[rows] = offer.min_unit
        self.max_unit[rows] = offer.max_unit
        self.step_size[rows] = offer.step_size
        self.count += len(rows)
        self.odd += len(rows) * (offer.min_unit != 1 or offer.step_size != 1)

    def _write(
        self,
        row: int,
        figures: tuple[int, float, float, int, int, int, int],
        at: int,
        quietly: bool,
    ) -> None:
        used, whole, full, piece, min_unit, max_unit, step_size = figures
        old = self._reading(row)
        self.count += (at >= 0) - (old[1] >= 0)
        min_unit_at, max_unit_at, step_size_at = self._units_at
        self.odd += (min_unit != 1 or step_size != 1) - (
            min_unit_at[row] != 1 or step_size_at[row] != 1
        )
        self._used_at[row], self._capacity_at[row] = used, whole
        self._full_at[row], self._largest_at[row] = full, piece
        min_unit_at[row], max_unit_at[row], step_size_at[row] = min_unit, max_unit, step_size
        self._bucket_at[row] = at
        if not quietly:
            self._tell(row, old)

    def _reading(self, row: int) -> Reading:
        """Return the figures of a row that the summaries use."""
        at: int = self._bucket_at[row]
        if at < 0:
            return ABSENT_READING
        return self._largest_at[row], at, self._full_at[row]

    def _tell(self, row: int, old: Reading) -> None:
        """Update the summaries after a change of a row."""
        root = self._trees.root_of(row)
        alone = self._trees.is_lone(root)
        self._gauge.move(self._slot, old, self._reading(row), alone)
        if not alone:
            self._follow_tree(root)

    def _follow_tree(self, root: int) -> None:
        """Update the summaries' fullness after a change in a tree."""
        members = self._trees.members(root)
        if len(members) > TREE_FOLLOWED_MAX:
            self._gauge.unbound(self._slot)
            return
        used, whole, reach = 0.0, 0.0, NONE
        # In row order, as in `fullness`: sums of floats depend on it.
        for row in sorted(members):
            used += self._used_at[row]
            whole += self._capacity_at[row]
            reach = max(reach, self._bucket_at[row])
        if reach >= 0:
            self._gauge.stretch(self._slot, reach, used / divisor(whole))

    def settle(self) -> None:
        """Update the summaries after quiet writes."""
        self._gauge.settle(self._slot, self.bucket)

    def close(self) -> None:
        """Remove the column from the summaries: it has no inventories left."""
        self._gauge.leave(self._slot)

    def figures(self, row: int) -> tuple[Any, ...]:
        """Return the figures of a row, in the order of `FIGURES`."""
        return tuple(getattr(self, name)[row].item() for name in FIGURES)

    def can_give(self, amount: int) -> Mask:
        """Which rows can give `amount` (at least 1) in one piece at their present usage?"""
        mask: Mask = self.largest >= amount
        return mask & self.admits(amount) if self.odd else mask

    def offers(self) -> Mask:
        """Which rows have an inventory of this class?"""
        mask: Mask = self.bucket != NONE
        return mask

    def admits(self, amount: int) -> Mask:
        """In which rows do the unit sizes allow `amount` in one piece?"""
        if amount > MAX_INT:  # above any unit size and the integers of the columns
            return np.zeros(len(self.used), dtype=np.bool_)
        mask: Mask = units_ok(self.min_unit, self.max_unit, self.step_size, amount)
        return mask

    def free(self) -> NDArray[np.float64]:
        """Return how many units are left in each row; negative if usage is over capacity."""
        return self.capacity - self.used

    def fullness(self) -> Fullness:
        """Return the fullness of trees in the rows of their roots. Do not modify the result."""
        if not self._trees.is_forest:
            return self.full
        root, size = self._trees.root, len(self.used)
        used = np.bincount(root, self.used, size)
        whole = np.bincount(root, self.capacity, size)
        part: Fullness = used / np.maximum(whole, 1.0)  # as `divisor`
        return part

    def is_loose(self, highest: bool) -> bool:
        """Is the upper (or lower) bound of fullness possibly not exact?"""
        return self._gauge.is_loose(self._slot, highest)

    def tighten(self, highest: bool) -> None:
        """Make the upper or the lower bound of fullness exact."""
        self._gauge.tighten(self._slot, highest)

    def bound(self, amount: int, highest: bool) -> float:
        """Bound the fullness of trees with a row that may give an amount, see `Gauge.bounds`."""
        return self._gauge.bound(self._slot, amount, highest)

    def largest_piece(self) -> int:
        """Return the largest amount that any row can give in one piece."""
        return int(self.largest.max())

    def extreme(self, highest: bool) -> Fullness:
        """Return by bucket the highest or lowest fullness of trees that reach it."""
        reach = self.bucket
        if self._trees.is_forest:
            reach = np.full(len(reach), NONE, dtype=np.int8)
            np.maximum.at(reach, self._trees.root, self.bucket)
        further = np.maximum if highest else np.minimum
        # One entry more than there are buckets: NONE (-1) selects the last, for rows without any.
        found = np.full(BUCKETS + 1, -np.inf if highest else np.inf)
        further.at(found, reach, self.fullness())
        by_bucket: Fullness = further.accumulate(found[-2::-1])[::-1]
        return by_bucket

    def grow(self, size: int) -> None:
        """Add empty rows up to `size`."""
        for name, absent in zip(FIGURES, ABSENT, strict=True):
            setattr(self, name, grown(getattr(self, name), size, absent))
        self.bucket = grown(self.bucket, size, NONE)
        self._look()

    def _look(self) -> None:
        self._used_at = cells(self.used)
        self._capacity_at = cells(self.capacity)
        self._full_at = cells(self.full)
        self._largest_at = cells(self.largest)
        self._bucket_at = cells(self.bucket)
        units = self.min_unit, self.max_unit, self.step_size
        self._units_at = tuple(map(cells, units))


class Marks:
    """Which rows of a chunk have which names: a mask per trait, or per aggregate.

    `uses` has the counts of these rows for all chunks. Unused names are dropped.
    """

    __slots__ = ("_chunk", "_slots", "_uses", "masks", "size")

    def __init__(self, size: int, uses: dict[str, Uses], chunk: int) -> None:
        self.size = size
        self.masks: dict[str, Mask] = {}
        self._uses = uses
        self._slots: dict[str, int] = {}
        self._chunk = chunk

    def change(self, row: int, before: frozenset[str], after: frozenset[str]) -> None:
        """Change the names of a row from `before` to `after`."""
        for name in before - after:
            self.masks[name][row] = False
            uses, slot = self._uses[name], self._slots[name]
            uses.rows[slot] -= 1
            if not uses.rows[slot]:
                del self.masks[name], self._slots[name]
                uses.give_back(slot)
                if not uses.held:
                    del self._uses[name]
        for name in after - before:
            mask = self.masks.get(name)
            if mask is None:
                mask = self._begun(name)
            mask[row] = True
            self._uses[name].rows[self._slots[name]] += 1

    def fill(self, rows: list[int] | NDArray[np.integer], names: frozenset[str]) -> None:
        """Give these names to rows that have none."""
        for name in names:
            mask = self.masks.get(name)
            if mask is None:
                mask = self._begun(name)
            mask[rows] = True
            self._uses[name].rows[self._slots[name]] += len(rows)

    def _begun(self, name: str) -> Mask:
        """Add the mask of a name that is new in the chunk."""
        mask: Mask = np.zeros(self.size, dtype=np.bool_)
        self.masks[name] = mask
        uses = self._uses.get(name)
        if uses is None:
            uses = self._uses[name] = Uses()
        self._slots[name] = uses.take(self._chunk)
        return mask

    def any_of(self, names: frozenset[str]) -> Mask | None:
        """Which rows have at least one of the names? None: no row. Do not modify the result."""
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
