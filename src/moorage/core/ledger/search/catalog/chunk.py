"""Some thousand providers of whole trees: records, and columns of the same data for searches."""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

import numpy as np
from msgspec.structs import astuple

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.compact_inventories import (
    NO_INVENTORIES,
    OWN,
    OWN_FORM,
    Inventories,
    InventoryFigures,
    InventoryPacker,
)
from moorage.core.ledger.model import NO_TAGS, Inventory, Provider, ProviderRecord, Tags
from moorage.core.ledger.search.catalog.columns import ABSENT, Column, Marks, Mask
from moorage.core.ledger.search.catalog.summaries import Gauge, Summaries
from moorage.core.ledger.search.catalog.trees import Trees

CHUNK_ROWS = 1024
"""Rows of a new chunk: few enough that a search touches little, many enough for numpy."""

SPARE_PART = 8
"""New trees leave one row in this many free, for later children."""


FEW_ALIKE = 8
"""Fewer providers of one kind than this are written one by one."""

_ROWS = list(range(CHUNK_ROWS))
"""The row numbers; chunks share these objects."""


Entry = tuple[int, int, ProviderRecord]
"""A row, the row of the root of its tree, and its record."""


class Chunk:
    """Rows of providers. A row has one provider or is empty; empty rows are reused.

    `number`: the chunk's index in the catalog and in the summaries.
    """

    __slots__ = (
        "_shelf",
        "_step",
        "_summaries",
        "_unsettled",
        "_vacant",
        "aggregates",
        "columns",
        "here",
        "number",
        "records",
        "traits",
        "trees",
    )

    def __init__(
        self, size: int, number: int, summaries: Summaries, shelf: InventoryPacker
    ) -> None:
        self.number = number
        self.records: list[ProviderRecord | None] = [None] * size
        self.here: Mask = np.zeros(size, dtype=np.bool_)
        self.columns: dict[str, Column] = {}
        self.traits = Marks(size, summaries.traits, number)
        self.aggregates = Marks(size, summaries.aggregates, number)
        self.trees = Trees(size)
        self._summaries = summaries
        self._shelf = shelf
        self._step = size
        self._vacant = _ROWS[:] if size == CHUNK_ROWS else list(range(size))
        self._unsettled = False
        summaries.rows.take(number)

    @property
    def size(self) -> int:
        """The number of rows, including empty ones."""
        return len(self.records)

    def has_room_for_tree(self, providers: int) -> bool:
        """May a new tree with this many providers be put here?"""
        return providers + self._step // SPARE_PART <= len(self._vacant)

    def record(self, row: int) -> ProviderRecord:
        """Return the record of a row, which must not be empty."""
        record = self.records[row]
        if record is None:
            raise LookupError(f"row {row} is empty")
        return record

    def take(self) -> int:
        """Return an empty row, which the caller must fill at once."""
        if not self._vacant:
            self._grow(self.size + self._step)
        return heappop(self._vacant)

    def enter(self, row: int, root: int, provider: Provider, version: int) -> None:
        """Fill an empty row with a provider that has no inventory and no tags yet."""
        self.records[row] = ProviderRecord(provider, NO_INVENTORIES, NO_TAGS, version)
        self.here[row] = True
        self._summaries.rows.rows[self.number] += 1
        self.trees.join(row, root)

    def clear(self, row: int) -> None:
        """Empty a row."""
        record = self.record(row)
        self._mark(row, record.tags, NO_TAGS)
        for name in record.inventories:
            self._fill(row, name, None, 0)
        self.trees.leave(row)
        self.here[row] = False
        self._summaries.rows.rows[self.number] -= 1
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
        """Change a row: None means unchanged, an inventory of None means deleted."""
        old = self.record(row)
        held = old.inventories
        if provider is not None and provider.parent != old.provider.parent:
            self.trees.parents = None
        if inventories:
            held = self._change(row, held, inventories)
        if tags is None:
            tags = old.tags
        else:
            self._mark(row, old.tags, tags)
        self.records[row] = ProviderRecord(provider or old.provider, held, tags, version)

    def fill(self, entries: list[Entry]) -> None:
        """Fill many taken rows with complete records, roots first."""
        traits: dict[frozenset[str], list[int]] = {}
        aggregates: dict[frozenset[AggregateId], list[int]] = {}
        # Keyed by the id of the offers: providers of one kind share the object.
        alike: dict[int, tuple[list[int], list[Inventories]]] = {}
        for row, _, record in entries:
            self.records[row] = record
            traits.setdefault(record.tags.traits, []).append(row)
            aggregates.setdefault(record.tags.aggregates, []).append(row)
            held = _packed(record.inventories)
            rows, all_held = alike.setdefault(id(held.offers), ([], []))
            rows.append(row)
            all_held.append(held)
        self.here[[row for row, _, _ in entries]] = True
        self._summaries.rows.rows[self.number] += len(entries)
        self.trees.join_alone([row for row, root, _ in entries if row == root])
        for row, root, _ in entries:
            if row != root:
                self.trees.join(row, root)
        for names, those in traits.items():
            self.traits.fill(those, names)
        for uuids, those in aggregates.items():
            self.aggregates.fill(those, uuids)
        for rows, all_held in alike.values():
            self._fill_alike(rows, all_held)
        for column in self.columns.values():
            column.settle()

    def _fill_alike(self, rows: list[int], all_held: list[Inventories]) -> None:
        """Write the inventories of rows with equal offers into their columns."""
        offers = all_held[0].offers
        if len(rows) < FEW_ALIKE:
            for row, held in zip(rows, all_held, strict=True):
                for offer, used in zip(offers, held.own_figures()[::OWN], strict=True):
                    self._column(offer.name).put(row, offer, used, quietly=True)
            return
        figures = np.frombuffer(b"".join([held.figures for held in all_held]), dtype=np.int64)
        used_by_class = figures.reshape(len(rows), len(offers), OWN)[:, :, 0]
        for number, offer in enumerate(offers):
            self._column(offer.name).fill(np.array(rows), offer, used_by_class[:, number])

    def begin_many(self) -> None:
        """Start writing many rows; the summaries are updated once, by `end_many`."""
        self._unsettled = True

    def end_many(self, names: Iterable[str]) -> None:
        """Update the summaries of these classes, of which inventories may have changed."""
        self._unsettled = False
        for name in names:
            if name in self.columns:
                self.columns[name].settle()

    def rename_class(self, old: str, new: str, version: int) -> None:
        """Rename class `old` to `new` in every inventory; the summaries are already renamed."""
        column = self.columns.pop(old, None)
        if column is None:
            return
        self.columns[new] = column
        for row, record in enumerate(self.records):
            if record is not None and old in record.inventories:
                held = self._shelf.renamed(_packed(record.inventories), old, new)
                self.records[row] = ProviderRecord(record.provider, held, record.tags, version)

    def image(self, row: int) -> dict[str, object]:
        """Return the data of a row from the record and from the columns, for comparison."""
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

    def _change(
        self,
        row: int,
        held: Mapping[str, Inventory],
        changes: Mapping[str, Inventory | None],
    ) -> Inventories:
        """Write the changed inventories into their columns; return all inventories of the row."""
        assert isinstance(held, Inventories)
        own, single = bytearray(held.figures), self.trees.is_single(row)
        met = at = 0
        for offer in held.offers:
            inventory = changes.get(offer[0])
            if inventory is not None:
                if astuple(inventory)[:-OWN] != offer.common:
                    break
                met += 1
                used = inventory.used
                OWN_FORM.pack_into(own, at, used, inventory.created_at, inventory.updated_at)
                self.columns[offer[0]].use(row, used, offer, single, self._unsettled)
            at += OWN_FORM.size
        if met == len(changes):  # the usual case: a claim changes only the usage
            return Inventories(held.offers, bytes(own))
        left = held.unpacked()
        for name, inventory in changes.items():
            if inventory is not None:
                left[name] = inventory
            elif left.pop(name, None) is not None:
                self._fill(row, name, None, 0)
        after = self._shelf.packed(left)
        for offer in after.offers:
            inventory = changes.get(offer.name)
            if inventory is not None:
                self._fill(row, offer.name, offer, inventory.used)
        return after

    def _fill(self, row: int, name: str, offer: InventoryFigures | None, used: int) -> None:
        """Write an inventory into its column; None: remove the one that the row has."""
        column = self._column(name)
        if offer is not None:
            column.put(row, offer, used, self._unsettled)
        else:
            column.drop(row, self._unsettled)
            if not column.count:
                del self.columns[name]
                column.close()
                if not self._summaries.classes[name].held:
                    del self._summaries.classes[name]

    def _column(self, name: str) -> Column:
        """Return the column of a class; create it if necessary."""
        column = self.columns.get(name)
        if column is None:
            gauge = self._summaries.classes.get(name)
            if gauge is None:
                gauge = self._summaries.classes[name] = Gauge()
            column = self.columns[name] = Column(self.trees, gauge, self.number)
        return column

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


def _packed(inventories: Mapping[str, Inventory]) -> Inventories:
    """Return the inventories of a chunk's record, which are always packed."""
    assert isinstance(inventories, Inventories)
    return inventories


Place = tuple[Chunk, int]
"""The place of a provider: its chunk and its row."""


def uuid_at(place: Place) -> ProviderId:
    """Return the UUID of the provider at a place."""
    return place[0].record(place[1]).provider.uuid
