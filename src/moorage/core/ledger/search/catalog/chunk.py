"""Some thousand providers of whole trees: records, and columns of the same data for searches."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

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
from moorage.core.ledger.search.catalog.packed_chunk import PackedRecords
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


class Entries:
    """Taken rows to be filled, the rows of the roots of their trees, and their records."""

    __slots__ = ("records", "roots", "rows")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.roots: list[int] = []
        self.records: list[ProviderRecord] = []


class Chunk:
    """Rows of providers. A row has one provider or is empty; empty rows are reused.

    `number`: the chunk's index in the catalog and in the summaries.
    """

    __slots__ = (
        "_packed",
        "_shelf",
        "_summaries",
        "_unsettled",
        "_vacant",
        "aggregates",
        "columns",
        "here",
        "number",
        "records",
        "step",
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
        self.step = size
        """The rows it began with."""
        self._packed: PackedRecords | None = None
        """The records of a restored chunk, until they are first read."""
        self._vacant = _ROWS[:] if size == CHUNK_ROWS else list(range(size))
        self._unsettled = False
        summaries.rows.take(number)

    if not TYPE_CHECKING:  # it would take every attribute for one that exists

        def __getattr__(self, name: str) -> list[ProviderRecord | None]:
            # Called for `records` only, and only of a restored chunk: other reads pay nothing.
            if name != "records" or self._packed is None:
                raise AttributeError(name)
            self.records = list(self._packed)
            self._packed = None
            return self.records

    def held(self) -> Iterable[ProviderRecord | None]:
        """Return the records by row as of now: references are copied, no records are made."""
        return self.records.copy() if self._packed is None else self._packed

    def kinds(self) -> list[tuple[tuple[InventoryFigures, ...], int]]:
        """Return the combinations of offers, each with the number of its providers."""
        if self._packed is not None:
            return self._packed.counted_kinds()
        found = [_packed(each.inventories).offers for each in self.records if each is not None]
        # Counted by id: providers of one kind share the object, and hashing takes longer.
        known = {id(offers): offers for offers in found}
        return [(known[key], count) for key, count in Counter(map(id, found)).items()]

    @property
    def is_packed(self) -> bool:
        """Are the records not made yet?"""
        return self._packed is not None

    @property
    def size(self) -> int:
        """The number of rows, including empty ones."""
        return len(self.here)

    def has_room_for_tree(self, providers: int) -> bool:
        """May a new tree with this many providers be put here?"""
        return providers + self.step // SPARE_PART <= len(self._vacant)

    @property
    def trees_fit(self) -> int:
        """How many new trees of one provider may be put here; none if negative."""
        return len(self._vacant) - self.step // SPARE_PART

    def record(self, row: int) -> ProviderRecord:
        """Return the record of a row, which must not be empty."""
        record = self.records[row]
        if record is None:
            raise LookupError(f"row {row} is empty")
        return record

    def take(self) -> int:
        """Return an empty row, which the caller must fill at once."""
        if not self._vacant:
            self._grow(self.size + self.step)
        return heappop(self._vacant)

    def take_many(self, count: int) -> list[int]:
        """Return this many empty rows, ascending, which must exist and be filled at once."""
        self._vacant.sort()  # a sorted list is a heap
        rows = self._vacant[:count]
        del self._vacant[:count]
        return rows

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

    def fill(self, entries: Entries) -> None:
        """Fill many taken rows with complete records, roots first."""
        traits: dict[frozenset[str], list[int]] = {}
        aggregates: dict[frozenset[AggregateId], list[int]] = {}
        # Keyed by the id of the offers: providers of one kind share the object.
        alike: dict[int, tuple[list[int], list[Inventories]]] = {}
        for row, record in zip(entries.rows, entries.records, strict=True):
            self.records[row] = record
            traits.setdefault(record.tags.traits, []).append(row)
            aggregates.setdefault(record.tags.aggregates, []).append(row)
            held = _packed(record.inventories)
            kind = id(held.offers)
            if kind not in alike:
                alike[kind] = [], []
            rows, all_held = alike[kind]
            rows.append(row)
            all_held.append(held)
        self._arrange(entries.rows, list(zip(entries.rows, entries.roots, strict=True)))
        for names, those in traits.items():
            self.traits.fill(those, names)
        for uuids, those in aggregates.items():
            self.aggregates.fill(those, uuids)
        for rows, all_held in alike.values():
            offers = all_held[0].offers
            if not offers:
                continue
            figures = np.frombuffer(b"".join([held.figures for held in all_held]), dtype=np.int64)
            used = figures.reshape(len(rows), len(offers), OWN)[:, :, 0]
            self._fill_alike(np.array(rows), offers, used)
        for column in self.columns.values():
            column.settle()

    def restore(self, records: PackedRecords) -> None:
        """Fill a new chunk; its records are made when they are first read."""
        places = records.places
        rows = places.row.tolist()
        self._arrange(
            rows, [(row, records.below[row][1] if row in records.below else row) for row in rows]
        )
        self._vacant = np.flatnonzero(~self.here).tolist()
        self.step = records.step
        for marks, all_names, which in (
            (self.traits, records.traits, places.traits),
            (self.aggregates, records.aggregates, places.aggregates),
        ):
            for number, names in enumerate(all_names):
                marks.fill(places.row[which == number], names)
        for number, (offers, used) in enumerate(zip(records.kinds, records.used, strict=True)):
            if offers:
                self._fill_alike(places.row[places.kind == number], offers, used)
        for column in self.columns.values():
            column.settle()
        records.used.clear()
        self._packed = records
        del self.records

    def _arrange(self, rows: list[int], pairs: list[tuple[int, int]]) -> None:
        """Occupy rows, and join each of the pairs: a row, and the row of its root."""
        self.here[rows] = True
        self._summaries.rows.rows[self.number] += len(rows)
        self.trees.join_alone([row for row, root in pairs if row == root])
        for row, root in pairs:
            if row != root:
                self.trees.join(row, root)

    def _fill_alike(
        self,
        rows: NDArray[np.integer],
        offers: Sequence[InventoryFigures],
        used: NDArray[np.int64],
    ) -> None:
        """Write the inventories of rows with equal offers into their columns.

        `used`: a row for each of them, a column for each offer.
        """
        if len(rows) < FEW_ALIKE:
            for row, amounts in zip(rows.tolist(), used.tolist(), strict=True):
                for offer, amount in zip(offers, amounts, strict=True):
                    self._column(offer.name).put(row, offer, amount, quietly=True)
            return
        for number, offer in enumerate(offers):
            self._column(offer.name).fill(rows, offer, used[:, number])

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
