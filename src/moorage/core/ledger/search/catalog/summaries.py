"""Summaries of all chunks: one number per chunk and condition.

A query compares these before it opens any chunk, so that chunks without results cost almost
nothing. Every number is always exact or a safe bound: `apply` widens a bound at once, and a query
that depends on it tightens it later.
"""

from bisect import bisect_right
from collections.abc import Iterable
from math import isfinite
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

Counts = NDArray[np.int64]
"""One count per chunk."""

FLOORS = [0, 1, 2, 3] + [(4 + part) << step for step in range(29) for part in range(4)]
"""The smallest amount of each bucket, and the first amount beyond the last one."""
BUCKETS = len(FLOORS)
FLOORS.append(8 << 29)
_FLOORS_COLUMN = np.array(FLOORS, dtype=np.int64)
"""`FLOORS` as an array. There are four buckets per doubling, up to MAX_INT."""

NONE = -1
"""The bucket of a row without inventory."""

Reading = tuple[int, int, float]
"""The largest amount that a row can give, the bucket of this amount, and the row's fullness."""

ABSENT_READING: Reading = (-1, NONE, 0.0)

_FEW = 8
"""Up to this many numbers are changed one by one, more with numpy."""


def bucket(amount: int) -> int:
    """Return the bucket of an amount."""
    return bisect_right(FLOORS, amount) - 1


def buckets(amounts: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return the buckets of many amounts."""
    return (np.searchsorted(_FLOORS_COLUMN, amounts, side="right") - 1).astype(np.int8)


class Tightened(Protocol):
    """A column, which can compute the exact figures of its chunk."""

    def largest_piece(self) -> int:
        """Return the largest amount that any row can give in one piece."""
        ...

    def extreme(self, highest: bool) -> NDArray[np.float64]:
        """Return the highest or the lowest fullness by bucket, see `Gauge`."""
        ...


class Register:
    """Slots for those chunks that have something, so that rare things need little memory."""

    __slots__ = ("_aligned", "_free", "chunks", "held")

    def __init__(self) -> None:
        self.chunks: NDArray[np.intp] = np.full(1, -1)
        """The chunk of each slot; -1: the slot is free."""
        self.held = 0
        """Slots in use."""
        self._free = [0]
        self._aligned = 0
        """Chunks whose slot number is the chunk number."""

    def take(self, chunk: int) -> int:
        """Return a slot for a chunk that has none."""
        if not self._free:
            size = len(self.chunks)
            self._grow(2 * size)
            self._free += range(2 * size - 1, size - 1, -1)
        slot = self._free.pop()
        self.chunks[slot] = chunk
        self.held += 1
        self._aligned += slot == chunk
        return slot

    def give_back(self, slot: int) -> None:
        """Free a slot."""
        self._aligned -= slot == int(self.chunks[slot])
        self.chunks[slot] = -1
        self.held -= 1
        self._free.append(slot)

    def is_sound(self) -> bool:
        """Do the counts of slots agree with the slots?"""
        aligned = int(np.count_nonzero(self.chunks == np.arange(len(self.chunks))))
        held = int(np.count_nonzero(self.chunks >= 0))
        return (aligned, held) == (self._aligned, self.held)

    def by_chunk(self, numbers: NDArray[Number], size: int) -> NDArray[Number]:
        """Arrange one number per slot by chunk; 0 for chunks without a slot. Do not modify it.

        `size`: the number of chunks.
        """
        if self._aligned == size:  # usual if every chunk has a slot
            return numbers[:size]
        found: NDArray[Number] = np.zeros(size + 1, dtype=numbers.dtype)
        found[self.chunks] = numbers
        return found[:-1]

    def _grow(self, size: int) -> None:
        self.chunks = grown(self.chunks, size, -1)


class Uses(Register):
    """Counts of rows of one kind by chunk: rows with a trait, or in an aggregate."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        super().__init__()
        self.rows: NDArray[np.int64] = np.zeros(1, dtype=np.int64)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self.rows = grown(self.rows, size, 0)


class Gauge(Register):
    """Summaries of one resource class, by chunk.

    Fullness is the used part of a tree's capacity. `most`, `fullest` and `emptiest` are bounds:
    exact unless the chunk is marked in `fell` or as loose, and never too tight.
    """

    __slots__ = (
        "_columns",
        "at_least",
        "at_least_at",
        "emptiest",
        "emptiest_at",
        "emptiest_loose",
        "fell",
        "fell_at",
        "fullest",
        "fullest_at",
        "fullest_loose",
        "most",
        "most_at",
    )

    def __init__(self) -> None:
        super().__init__()
        self.most: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        """The largest amount that any row can give in one piece."""
        self.at_least: NDArray[np.int32] = np.zeros((BUCKETS, 1), dtype=np.int32)
        """By bucket: the number of rows in this bucket or a higher one. Exact."""
        self.fullest: NDArray[np.float64] = np.full((BUCKETS, 1), -np.inf)
        """By bucket: the highest fullness of a tree with a row in this bucket or a higher one."""
        self.emptiest: NDArray[np.float64] = np.full((BUCKETS, 1), np.inf)
        """By bucket: the lowest fullness of such a tree."""
        self.fell: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        """Slots whose `most` may be too high."""
        self.fullest_loose: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        """Slots whose `fullest` may be too high."""
        self.emptiest_loose: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        """Slots whose `emptiest` may be too low."""
        self._columns: list[Tightened | None] = [None]
        self._look()

    def enter(self, chunk: int, column: Tightened) -> int:
        """Return a slot for a chunk's new column, still without inventories."""
        slot = self.take(chunk)
        self._columns[slot] = column
        return slot

    def forget(self) -> None:
        """Drop all columns of a discarded catalog: they and this object refer to each other."""
        self._columns.clear()

    def leave(self, slot: int) -> None:
        """Drop a column that has no inventories left."""
        self.give_back(slot)
        self._columns[slot] = None
        self.most[slot] = 0
        self.at_least[:, slot] = 0
        self.fullest[:, slot] = -np.inf
        self.emptiest[:, slot] = np.inf
        self.fell[slot] = self.fullest_loose[slot] = self.emptiest_loose[slot] = False

    def move(self, slot: int, old: Reading, new: Reading, alone: bool) -> None:
        """Record the change of one row. `alone`: the row is a whole tree.

        For rows of larger trees the caller must also call `stretch` or `unbound`.
        """
        old_most, old_bucket, old_full = old
        new_most, new_bucket, new_full = new
        if new_bucket != old_bucket:
            self._count(slot, old_bucket, new_bucket)
        most = self.most_at[slot]
        if new_most > most:
            self.most_at[slot] = new_most
        elif old_most == most and new_most < most:
            self.fell_at[slot] = True
        if not alone:
            self.fullest_loose[slot] = self.emptiest_loose[slot] = True
            return
        if old_bucket >= 0:
            sank = new_bucket < old_bucket
            if (sank or new_full < old_full) and old_full >= self.fullest_at[old_bucket, slot]:
                self.fullest_loose[slot] = True
            if (sank or new_full > old_full) and old_full <= self.emptiest_at[old_bucket, slot]:
                self.emptiest_loose[slot] = True
        if new_bucket >= 0:
            self.stretch(slot, new_bucket, new_full)

    def stretch(self, slot: int, highest: int, full: float) -> None:
        """Record the fullness of a tree whose highest bucket is this."""
        fullest, emptiest = self.fullest_at, self.emptiest_at
        at = highest
        # Bounds only widen towards lower buckets, so the first one that suffices ends the loop.
        while at >= 0 and fullest[at, slot] < full:
            fullest[at, slot] = full
            at -= 1
        at = highest
        while at >= 0 and emptiest[at, slot] > full:
            emptiest[at, slot] = full
            at -= 1

    def unbound(self, slot: int) -> None:
        """Record that some tree may have any fullness."""
        self.fullest_loose[slot] = self.emptiest_loose[slot] = True
        if self.fullest_at[BUCKETS - 1, slot] != np.inf:
            self.fullest[:, slot] = np.inf
            self.emptiest[:, slot] = -np.inf

    def settle(self, slot: int, room: NDArray[np.int8]) -> None:
        """Recompute everything for a chunk, given the bucket of each row."""
        counts = np.bincount(room[room >= 0], minlength=BUCKETS)
        self.at_least[:, slot] = counts[::-1].cumsum()[::-1]
        self._tighten_most(slot)
        for highest in (True, False):
            self.tighten(slot, highest)

    def tighten(self, slot: int, highest: bool) -> None:
        """Make the `fullest` or `emptiest` of a chunk exact."""
        column = self._columns[slot]
        assert column is not None
        (self.fullest if highest else self.emptiest)[:, slot] = column.extreme(highest)
        (self.fullest_loose if highest else self.emptiest_loose)[slot] = False

    def is_loose(self, slot: int, highest: bool) -> bool:
        """Is the `fullest` or `emptiest` of a chunk possibly not exact?"""
        return bool((self.fullest_loose if highest else self.emptiest_loose)[slot])

    def rows_with(self, amount: int, size: int) -> Counts:
        """Return how many rows of each chunk may give an amount in one piece: never too few.

        `size`: the number of chunks.
        """
        at = bucket(amount)
        rows, able = self.at_least[at], self.most >= amount
        if at + 1 < BUCKETS:
            # The exact maximum matters only where no row reaches the next bucket.
            unsure = able > self.at_least[at + 1]
            unsure &= self.fell
            if unsure.any():
                for slot in unsure.nonzero()[0].tolist():
                    self._tighten_most(slot)
                able = self.most >= amount
        return self.by_chunk(rows * able, size)

    def bounds(self, amount: int, size: int, highest: bool) -> NDArray[np.float64]:
        """Bound by chunk the fullness of trees with a row that may give an amount.

        Amount 0 means all trees that have the class. Chunks without such a tree get 0.
        """
        at = bucket(amount)
        if highest:
            return self.by_chunk(np.maximum(self.fullest[at], 0.0), size)
        lowest = self.emptiest[at]
        return self.by_chunk(np.where(np.isfinite(lowest), lowest, 0.0), size)

    def bound(self, slot: int, amount: int, highest: bool) -> float:
        """As `bounds`, for one chunk."""
        found: float = (self.fullest_at if highest else self.emptiest_at)[bucket(amount), slot]
        if highest:
            return max(found, 0.0)
        return found if isfinite(found) else 0.0

    def _tighten_most(self, slot: int) -> None:
        column = self._columns[slot]
        assert column is not None
        self.most[slot] = column.largest_piece()
        self.fell[slot] = False

    def _count(self, slot: int, old: int, new: int) -> None:
        low, high, step = (old + 1, new + 1, 1) if new > old else (new + 1, old + 1, -1)
        if high - low > _FEW:
            self.at_least[low:high, slot] += step
            return
        at_least = self.at_least_at
        for at in range(low, high):
            at_least[at, slot] += step

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self.most = grown(self.most, size, 0)
        self.at_least = grown(self.at_least, size, 0)
        self.fullest = grown(self.fullest, size, -np.inf)
        self.emptiest = grown(self.emptiest, size, np.inf)
        self.fell = grown(self.fell, size, False)
        self.fullest_loose = grown(self.fullest_loose, size, False)
        self.emptiest_loose = grown(self.emptiest_loose, size, False)
        self._columns += [None] * (size - len(self._columns))
        self._look()

    def _look(self) -> None:
        self.most_at = cells(self.most)
        self.at_least_at = cells(self.at_least)
        self.fell_at = cells(self.fell)
        self.fullest_at = cells(self.fullest)
        self.emptiest_at = cells(self.emptiest)


class Summaries:
    """The summaries of all chunks of a catalog."""

    __slots__ = ("aggregates", "classes", "rows", "traits")

    def __init__(self) -> None:
        self.rows = Uses()
        """Used rows by chunk; a chunk's slot number is its own number."""
        self.classes: dict[str, Gauge] = {}
        self.traits: dict[str, Uses] = {}
        self.aggregates: dict[str, Uses] = {}

    @property
    def size(self) -> int:
        """The number of chunks."""
        return self.rows.held

    def rows_with(self, name: str, amount: int) -> Counts | None:
        """Return how many rows of each chunk may give an amount of a class. None: no row."""
        gauge = self.classes.get(name)
        return None if gauge is None else gauge.rows_with(amount, self.size)

    def rows_named(self, uses: dict[str, Uses], names: Iterable[str]) -> Counts:
        """Return how many rows of each chunk may have at least one of the names."""
        counts = np.zeros(self.size, dtype=np.int64)
        for name in names:
            if name in uses:
                counts += uses[name].by_chunk(uses[name].rows, self.size)
        return counts


def grown(old: NDArray[Number], size: int, fill: object) -> NDArray[Number]:
    """Return a longer copy of an array, along its last axis."""
    new: NDArray[Number] = np.full((*old.shape[:-1], size), fill, dtype=old.dtype)
    new[..., : old.shape[-1]] = old
    return new


def cells(array: NDArray[Any]) -> Any:
    """Return a view for reading and writing single numbers, several times faster."""
    return array.data
