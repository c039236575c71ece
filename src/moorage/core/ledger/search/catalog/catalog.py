"""The catalog in memory: every provider with its inventories and tags, and the custom vocabulary.

`apply` writes the changes of a batch, `fill` and `learn` a snapshot.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from moorage.core.ids import ProviderId
from moorage.core.ledger.compact_inventories import InventoryPacker
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import (
    SHARING_TRAIT,
    CustomName,
    Described,
    Inventory,
    Provider,
    ProviderRecord,
    Tags,
)
from moorage.core.ledger.search.catalog.chunk import (
    CHUNK_ROWS,
    SPARE_PART,
    Chunk,
    Entries,
    Place,
    uuid_at,
)
from moorage.core.ledger.search.catalog.packed_chunk import PackedRecords, SharedValues
from moorage.core.ledger.search.catalog.summaries import Summaries
from moorage.core.ledger.search.catalog.summaries_check import unsound
from moorage.core.ledger.search.steps import Steps

MANY = 64
"""With this many changed rows in a chunk, its summaries are recomputed from all rows: with fewer,
it is faster to follow each change."""

NAMES_AT_A_TIME = 4_096
"""Names that a search by name looks at before other work may run: about a millisecond."""

LOOKED_UP = 256
"""Providers that are looked up in one piece."""


class Catalog:
    """All providers, arranged for searching. Never a source of truth: a copy of committed rows.

    `chunk_rows`: how many rows the search examines in one piece.
    """

    def __init__(
        self,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self.standard_classes = standard_classes
        self.standard_traits = standard_traits
        self.classes: dict[str, CustomName] = {}
        self.traits: dict[str, CustomName] = {}
        self.chunks: list[Chunk] = []
        self.summaries = Summaries()
        self.places: dict[ProviderId, Place] = {}
        self.sharing: dict[ProviderId, None] = {}
        """Providers with the sharing trait, in the order in which they got it."""
        self.applied = 0
        """Number of calls of `apply`: it shows a search after a pause whether anything changed."""
        self._names: dict[str, ProviderId] = {}
        self._children: dict[ProviderId, dict[ProviderId, None]] = {}
        self._trait_uses: Counter[str] = Counter()
        self._roomy: list[Chunk] = []
        self._shelf = InventoryPacker()
        self._version = 0
        self._chunk_rows = chunk_rows

    def has_class(self, name: str) -> bool:
        """Is this a standard resource class, or an existing custom one?"""
        return name in self.standard_classes or name in self.classes

    def has_trait(self, name: str) -> bool:
        """Is this a standard trait, or an existing custom one?"""
        return name in self.standard_traits or name in self.traits

    def has_aggregate(self, uuid: str) -> bool:
        """Has a provider ever been in this aggregate, since the catalog was filled?"""
        return uuid in self.summaries.aggregates

    def trait_in_use(self, name: str) -> bool:
        """Does any provider have the trait?"""
        return self._trait_uses[name] > 0

    @property
    def is_nested(self) -> bool:
        """Does any provider have a child?"""
        return bool(self._children)

    def __len__(self) -> int:
        return len(self.places)

    def record(self, provider: ProviderId) -> ProviderRecord | None:
        """Return all data of a provider; None: there is no such provider."""
        place = self.places.get(provider)
        return None if place is None else place[0].records[place[1]]

    def named(self, name: str) -> ProviderId | None:
        """Return the provider of this name."""
        return self._names.get(name)

    def names_with(self, text: str, most: int) -> Steps[list[ProviderId]]:
        """Return at most `most` providers whose names contain a text, in either case.

        The name itself comes first, then names that begin so. It may miss providers that are
        renamed meanwhile.
        """
        wanted = text.casefold()
        ranked: tuple[list[str], ...] = ([], [], [])
        names = [*self._names]
        for number, name in enumerate(names):
            if number % NAMES_AT_A_TIME == NAMES_AT_A_TIME - 1:
                yield
            folded = name.casefold()
            if wanted in folded:
                rank = 0 if folded == wanted else 1 if folded.startswith(wanted) else 2
                if len(ranked[rank]) < most:
                    ranked[rank].append(name)
        found = [name for names in ranked for name in sorted(names)][:most]
        return [uuid for name in found if (uuid := self._names.get(name)) is not None]

    def children_of(self, provider: ProviderId) -> list[ProviderId]:
        """Return the providers directly below this one."""
        return list(self._children.get(provider, ()))

    def tree_of(self, provider: ProviderId) -> list[ProviderId]:
        """Return every provider of this one's tree, including itself; [] if unknown."""
        place = self.places.get(provider)
        if place is None:
            return []
        chunk, row = place
        root = int(chunk.trees.root[row])
        return [uuid_at((chunk, member)) for member in chunk.trees.members(root)]

    def differences(self, other: "Catalog") -> list[str]:
        """Return the differences in content and answers, one line each; [] if there are none."""
        return [line for part in self.comparing(other) for line in part]

    def comparing(self, other: "Catalog") -> Iterator[list[str]]:
        """As `differences`, one provider at a time.

        Between two parts, further changes may be applied if both get them. The summaries of this
        catalog are compared with its chunks.
        """
        yield [
            f"{name} differ: {sorted(ours.items() ^ theirs.items())}"
            for name, ours, theirs in (
                ("resource classes", self.classes, other.classes),
                ("traits", self.traits, other.traits),
                ("uses of traits", +self._trait_uses, +other._trait_uses),
                ("sharing providers", dict(self.sharing), dict(other.sharing)),
            )
            if ours != theirs
        ]
        if len(self._names) != len(other._names):
            yield [f"there are {len(self._names)} names, and {len(other._names)} in the other"]
        for uuid in list(self.places):
            yield list(self._compared(other, uuid))
        theirs = list(other.places)
        for first in range(0, len(theirs), LOOKED_UP):
            some = [uuid for uuid in theirs[first : first + LOOKED_UP] if uuid not in self.places]
            yield [line for uuid in some for line in self._compared(other, uuid)]
        yield from unsound(self.summaries, self.chunks)

    def _compared(self, other: "Catalog", uuid: ProviderId) -> Iterator[str]:
        ours, theirs = self._image(uuid), other._image(uuid)
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                yield (
                    f"provider {uuid}: {key} is {ours.get(key)!r}, "
                    f"and {theirs.get(key)!r} in the other"
                )

    def fill(self, providers: list[Described]) -> None:
        """Add new providers, faster than `apply`.

        Raises LookupError if a root is neither known nor among them: the rows are corrupt.
        """
        self._version += 1
        arriving: dict[ProviderId, list[Described]] = {}
        for one in providers:
            arriving.setdefault(one[0].root, []).append(one)
        traits = Counter([tags.traits for _, _, tags in providers])
        for names, count in traits.items():
            for name in names:
                self._trait_uses[name] += count
        if any(SHARING_TRAIT in names for names in traits):
            for provider, _, tags in providers:
                if SHARING_TRAIT in tags.traits:
                    self.sharing.setdefault(provider.uuid)
        entries: dict[Chunk, Entries] = {}
        lone: list[Described] = []
        for root, members in arriving.items():
            if len(members) == 1 and members[0][0].uuid == root:
                lone += members
                continue
            self._fill_lone(lone, entries)
            lone = []
            self._fill_tree(root, members, entries)
        self._fill_lone(lone, entries)
        for chunk, those in entries.items():
            chunk.fill(those)

    def _fill_lone(self, roots: list[Described], entries: dict[Chunk, Entries]) -> None:
        """Give rows to new trees of one provider each, as many at a time as fit into a chunk."""
        at = 0
        while at < len(roots):
            chunk = self._chunk_for(1)
            some = roots[at : at + chunk.trees_fit]
            at += len(some)
            rows = chunk.take_many(len(some))
            places = [(chunk, row) for row in rows]
            self.places.update(zip([one[0].uuid for one in some], places, strict=True))
            self._names.update([(one[0].name, one[0].uuid) for one in some])
            mine = entries.setdefault(chunk, Entries())
            mine.rows += rows
            mine.roots += rows
            mine.records += self._recorded(some)

    def _fill_tree(
        self, root: ProviderId, members: list[Described], entries: dict[Chunk, Entries]
    ) -> None:
        """Give rows to new providers of one tree, the root first."""
        members.sort(key=lambda one: one[0].uuid != root)
        chunk = self._chunk_of(root, [one[0] for one in members])
        mine = entries.setdefault(chunk, Entries())
        for provider, _, _ in members:
            row = chunk.take()
            self.places[provider.uuid] = (chunk, row)
            self._link(provider)
            mine.rows.append(row)
            mine.roots.append(self.places[root][1])
        mine.records += self._recorded(members)

    def _recorded(self, providers: list[Described]) -> list[ProviderRecord]:
        packed, version = self._shelf.packed, self._version
        return [
            ProviderRecord(provider, packed(inventories), tags, version)
            for provider, inventories, tags in providers
        ]

    def restore(self, content: bytes, shared: SharedValues) -> None:
        """Add the providers of a chunk that `packed_chunk.packed` has stored, as a new chunk.

        Raises ValueError, LookupError: it has not stored these bytes.
        """
        self._version += 1
        records = PackedRecords(content, shared, self._version)
        chunk = Chunk(records.size, len(self.chunks), self.summaries, self._shelf)
        chunk.restore(records)
        self.chunks.append(chunk)
        if chunk.has_room_for_tree(1):
            self._roomy.append(chunk)
        rows = records.places.row.tolist()
        expected = len(self.places) + len(rows)
        places = [(chunk, row) for row in rows]
        self.places.update(zip(records.uuids, places, strict=True))
        self._names.update(zip(records.names, records.uuids, strict=True))
        if not len(self.places) == len(self._names) == expected:
            raise ValueError("a provider or a name is stored twice")
        if records.below:
            uuid_of = dict(zip(rows, records.uuids, strict=True))
            for row, (parent, _) in records.below.items():
                self._children.setdefault(uuid_of[parent], {})[uuid_of[row]] = None
        counts = np.bincount(records.places.traits, minlength=len(records.traits)).tolist()
        for names, count in zip(records.traits, counts, strict=True):
            for name in names:
                self._trait_uses[name] += count

    def shared_values(self) -> SharedValues:
        """Return what the chunks that are restored together have in common."""
        return SharedValues(self._shelf)

    def learn(self, classes: dict[str, CustomName], traits: dict[str, CustomName]) -> None:
        """Add custom classes and traits."""
        self.classes.update(classes)
        self.traits.update(traits)

    def apply(self, changes: Changes) -> None:
        """Apply committed changes; those of consumers are ignored.

        Raises LookupError if a provider's root is unknown: the rows are corrupt.
        """
        self.applied += 1
        for old, new in changes.renamed_classes.items():
            for _ in self.renaming(old, new):
                pass
        kept = self._providers(changes.providers) if changes.providers else {}
        self._contents(changes, kept)
        _merge(self.classes, changes.classes)
        _merge(self.traits, changes.traits)

    def renaming(self, old: str, new: str) -> Iterator[None]:
        """Rename a class in all inventories, one chunk at a time."""
        self._version += 1
        gauge = self.summaries.classes.pop(old, None)
        if gauge is not None:
            self.summaries.classes[new] = gauge
        for chunk in self.chunks:
            chunk.rename_class(old, new, self._version)
            yield

    def keeps_place(self, provider: Provider) -> bool:
        """Does the provider exist, and would it keep its place and its name?"""
        record = self.record(provider.uuid)
        return record is not None and _stays(record.provider, provider)

    def dicts(self) -> list[dict[Any, Any]]:
        """Return the dicts that grow with the number of providers."""
        return [self.places, self._names, self._children]

    def _providers(self, images: dict[ProviderId, Provider | None]) -> dict[ProviderId, Provider]:
        """Remove, move and add providers; return changed ones that keep their row."""
        arriving: dict[ProviderId, list[Provider]] = defaultdict(list)
        kept: dict[ProviderId, Provider] = {}
        moving: dict[ProviderId, ProviderRecord] = {}
        renewed: set[ProviderId] = set()
        for uuid, provider in images.items():
            old = self.record(uuid)
            if old is not None:
                if provider is not None and _stays(old.provider, provider):
                    kept[uuid] = provider
                    continue
                self._unlink(old.provider)
            if provider is None or (old is not None and _is_another(old.provider, provider)):
                self._remove(uuid)
                renewed.add(uuid)
            elif old is not None and old.provider.root != provider.root:
                moving[uuid] = old
                self._remove(uuid)
            if provider is None:
                continue
            self._link(provider)
            if uuid not in self.places:
                arriving[provider.root].append(provider)
            else:
                kept[uuid] = provider
        # Providers whose root was replaced under the same UUID still have rows in the old tree.
        for uuid in [uuid for uuid in kept if kept[uuid].root in renewed] if renewed else ():
            moving[uuid] = self.places[uuid][0].record(self.places[uuid][1])
            self._remove(uuid)
            arriving[kept[uuid].root].append(kept.pop(uuid))
        for root, members in arriving.items():
            self._seat(root, members)
        for uuid, record in moving.items():
            self._write(uuid, None, record.tags, record.inventories)
        return kept

    def _seat(self, root: ProviderId, members: list[Provider]) -> None:
        """Give rows to new providers of one tree, the root first."""
        members.sort(key=lambda provider: provider.uuid != root)
        chunk = self._chunk_of(root, members)
        self._version += 1
        for provider in members:
            row = chunk.take()
            self.places[provider.uuid] = (chunk, row)
            chunk.enter(row, self.places[root][1], provider, self._version)

    def _chunk_of(self, root: ProviderId, members: list[Provider]) -> Chunk:
        """Return the chunk of a tree, or one with room for it; the root is the first member."""
        place = self.places.get(root)
        if place is not None:
            return place[0]
        if members[0].uuid != root:
            raise LookupError(f"provider {members[0].uuid} has an unknown root {root}")
        return self._chunk_for(len(members))

    def _chunk_for(self, providers: int) -> Chunk:
        """Return a chunk with room for a new tree."""
        if self._roomy and self._roomy[0].has_room_for_tree(providers):
            return self._roomy[0]
        self._roomy = [chunk for chunk in self._roomy if chunk.has_room_for_tree(1)]
        for chunk in self._roomy:
            if chunk.has_room_for_tree(providers):
                return chunk
        size = max(self._chunk_rows, providers + providers // (SPARE_PART - 1) + 1)
        chunk = Chunk(size, len(self.chunks), self.summaries, self._shelf)
        self.chunks.append(chunk)
        self._roomy.append(chunk)
        return chunk

    def _remove(self, uuid: ProviderId) -> None:
        place = self.places.pop(uuid, None)
        if place is None:
            return
        chunk, row = place
        self._count_traits(uuid, chunk.record(row).tags.traits, frozenset())
        chunk.clear(row)
        if chunk not in self._roomy and chunk.has_room_for_tree(1):
            self._roomy.append(chunk)

    def _link(self, provider: Provider) -> None:
        self._names[provider.name] = provider.uuid
        if provider.parent is not None:
            self._children.setdefault(provider.parent, {})[provider.uuid] = None

    def _unlink(self, provider: Provider) -> None:
        if self._names.get(provider.name) == provider.uuid:
            del self._names[provider.name]
        if provider.parent is not None:
            siblings = self._children[provider.parent]
            del siblings[provider.uuid]
            if not siblings:
                del self._children[provider.parent]

    def _contents(self, changes: Changes, kept: dict[ProviderId, Provider]) -> None:
        """Write the changes inside of rows; those of removed providers are ignored."""
        inventories: dict[ProviderId, dict[str, Inventory | None]] = {}
        for (uuid, name), inventory in changes.inventories.items():
            inventories.setdefault(uuid, {})[name] = inventory
        chunks: list[Chunk] = []
        if len(inventories) >= MANY:
            changed = Counter(self.places[uuid][0] for uuid in inventories if uuid in self.places)
            chunks = [chunk for chunk, count in changed.items() if count >= MANY]
        for chunk in chunks:
            chunk.begin_many()
        try:
            for uuid in kept | inventories | changes.tags:
                if uuid in self.places:
                    self._write(
                        uuid, kept.get(uuid), changes.tags.get(uuid), inventories.get(uuid, {})
                    )
        finally:
            for chunk in chunks:
                chunk.end_many({name for _, name in changes.inventories})

    def _write(
        self,
        uuid: ProviderId,
        provider: Provider | None,
        tags: Tags | None,
        inventories: Mapping[str, Inventory | None],
    ) -> None:
        chunk, row = self.places[uuid]
        if tags is not None:
            self._count_traits(uuid, chunk.record(row).tags.traits, tags.traits)
        self._version += 1
        chunk.write(row, self._version, provider, tags, inventories)

    def _count_traits(
        self, uuid: ProviderId, before: frozenset[str], after: frozenset[str]
    ) -> None:
        if before == after:
            return
        self._trait_uses.update(after - before)
        self._trait_uses.subtract(before - after)
        if SHARING_TRAIT in after:
            self.sharing.setdefault(uuid)
        else:
            self.sharing.pop(uuid, None)

    def _image(self, uuid: ProviderId) -> dict[str, object]:
        """Return all data of a provider, from the records and from the columns."""
        place = self.places.get(uuid)
        if place is None:
            return {"presence": False}
        children = sorted(self.children_of(uuid))
        named = self.named(place[0].record(place[1]).provider.name)
        found = {"presence": True, "children": children, "bearer of its name": named}
        return found | place[0].image(place[1])


def _stays(old: Provider, new: Provider) -> bool:
    """Are all properties that determine a provider's place unchanged?"""
    return (
        old.name == new.name
        and old.parent == new.parent
        and old.root == new.root
        and old.created_at == new.created_at
    )


def _is_another(old: Provider, new: Provider) -> bool:
    """Was the provider deleted and created again with the same UUID in one batch?"""
    return old.created_at != new.created_at


def _merge(target: dict[str, CustomName], changes: dict[str, CustomName | None]) -> None:
    for name, vocable in changes.items():
        if vocable is None:
            target.pop(name, None)
        else:
            target[name] = vocable


class Loader:
    """Fills an empty catalog. Do not read the catalog before `finish`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._early: list[Described] = []
        """Providers that were read before the root of their tree."""

    def take(self, providers: list[Described]) -> None:
        """Add some providers."""
        known = self._catalog.places
        if any(one[0].parent is not None for one in providers):
            here = {provider.uuid for provider, _, _ in providers}
            ready: list[Described] = []
            for one in providers:
                is_early = one[0].root not in here and one[0].root not in known
                (self._early if is_early else ready).append(one)
            providers = ready
        self._catalog.fill(providers)

    def finish(self, classes: dict[str, CustomName], traits: dict[str, CustomName]) -> None:
        """Add the providers that were read too early, and the custom classes and traits.

        Raises LookupError if a provider's root is unknown: the rows are corrupt.
        """
        self._catalog.fill(self._early)
        self._catalog.learn(classes, traits)
        self._early = []
