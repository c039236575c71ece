"""Some thousand providers of whole trees: their records, and the same in columns to search in."""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import NO_TAGS, Inventory, Provider, ProviderRecord, Tags
from moorage.core.ledger.search.columns import ABSENT, Column, Marks, Mask
from moorage.core.ledger.search.trees import Trees

BLOCK_ROWS = 1024
"""Rows of a new block: few enough that a search touches little, many enough for numpy."""

SPARE_PART = 8
"""One row in so many is left free by new trees, for children that come later."""


class Block:
    """Rows of providers. A row holds one provider or nothing; freed rows are used again."""

    __slots__ = ("_step", "_vacant", "aggregates", "columns", "here", "records", "traits", "trees")

    def __init__(self, size: int) -> None:
        self._step = size
        self.records: list[ProviderRecord | None] = [None] * size
        self.here: Mask = np.zeros(size, dtype=np.bool_)
        self.columns: dict[str, Column] = {}
        self.traits = Marks(size)
        self.aggregates = Marks(size)
        self.trees = Trees(size)
        self._vacant = list(range(size))

    @property
    def size(self) -> int:
        """How many rows there are, empty ones included."""
        return len(self.records)

    def has_room_for_tree(self, providers: int) -> bool:
        """May a new tree of so many providers be put here?"""
        return providers + self._step // SPARE_PART <= len(self._vacant)

    def record(self, row: int) -> ProviderRecord:
        """Return what stands in a row that is not empty."""
        record = self.records[row]
        if record is None:
            raise LookupError(f"row {row} is empty")
        return record

    def take(self) -> int:
        """Return an empty row, which the caller fills at once."""
        if not self._vacant:
            self._grow(self.size + self._step)
        return heappop(self._vacant)

    def enter(self, row: int, root: int, provider: Provider, version: int) -> None:
        """Fill an empty row with a provider that has no inventory and no tags yet."""
        self.records[row] = ProviderRecord(provider, {}, NO_TAGS, version)
        self.here[row] = True
        self.trees.join(row, root)

    def clear(self, row: int) -> None:
        """Empty a row."""
        record = self.record(row)
        self._mark(row, record.tags, NO_TAGS)
        self._fill(row, record.inventories, dict.fromkeys(record.inventories))
        self.trees.leave(row)
        self.here[row] = False
        self.records[row] = None
        heappush(self._vacant, row)

    def write(
        self,
        row: int,
        version: int,
        provider: Provider | None,
        tags: Tags | None,
        inventories: Mapping[str, Inventory | None],
    ) -> None:
        """Change what stands in a row: None means unchanged, a None inventory that it is gone."""
        old = self.record(row)
        held = old.inventories
        if provider is not None and provider.parent != old.provider.parent:
            self.trees.parents = None
        if inventories:
            held = self._fill(row, held, inventories)
        if tags is None:
            tags = old.tags
        else:
            self._mark(row, old.tags, tags)
        self.records[row] = ProviderRecord(provider or old.provider, held, tags, version)

    def rename_class(self, old: str, new: str, version: int) -> None:
        """Let every inventory of class `old` be one of class `new`."""
        column = self.columns.pop(old, None)
        if column is None:
            return
        self.columns[new] = column
        for row, record in enumerate(self.records):
            if record is not None and old in record.inventories:
                held = {new if name == old else name: i for name, i in record.inventories.items()}
                self.records[row] = ProviderRecord(record.provider, held, record.tags, version)

    def image(self, row: int) -> dict[str, object]:
        """Return what stands in a row, as the record and as the columns have it, to compare."""
        record = self.record(row)
        root = int(self.trees.root[row])
        facts: dict[str, object] = {
            "provider": record.provider,
            "tags": record.tags,
            "traits in columns": sorted(self.traits.names(row)),
            "aggregates in columns": sorted(self.aggregates.names(row)),
            "root in columns": self.record(root).provider.uuid,
            "row in use": bool(self.here[row]),
            "row of a root": bool(self.trees.is_root[row]),
        }
        if root == row:
            members = self.trees.members(root)
            facts["tree"] = sorted(self.record(member).provider.uuid for member in members)
        for name, inventory in record.inventories.items():
            facts[f"inventory of {name}"] = inventory
        for name, column in self.columns.items():
            if column.figures(row) != ABSENT:
                facts[f"figures of {name}"] = column.figures(row)
        return facts

    def _mark(self, row: int, before: Tags, after: Tags) -> None:
        if before.traits != after.traits:
            self.traits.change(row, before.traits, after.traits)
        if before.aggregates != after.aggregates:
            self.aggregates.change(row, before.aggregates, after.aggregates)

    def _fill(
        self, row: int, held: dict[str, Inventory], changed: Mapping[str, Inventory | None]
    ) -> dict[str, Inventory]:
        """Write the changed inventories into their columns; return all the row has then."""
        after = dict(held)
        for name, inventory in changed.items():
            column = self.columns.get(name)
            if inventory is None:
                if after.pop(name, None) is None or column is None:
                    continue
                column.drop(row)
                column.count -= 1
                if not column.count:
                    del self.columns[name]
                continue
            if column is None:
                column = self.columns[name] = Column(self.size)
            column.count += name not in after
            column.put(row, inventory)
            after[name] = inventory
        return after

    def _grow(self, size: int) -> None:
        self._vacant += range(self.size, size)
        heapify(self._vacant)
        added = size - self.size
        for column in self.columns.values():
            column.grow(size)
        for part in (self.traits, self.aggregates, self.trees):
            part.grow(size)
        self.here = np.concatenate([self.here, np.zeros(added, dtype=np.bool_)])
        self.records += [None] * added


Place = tuple[Block, int]
"""Where a provider stands: its block and its row."""


def uuid_at(place: Place) -> ProviderId:
    """Return the UUID of the provider at a place."""
    return place[0].record(place[1]).provider.uuid
