"""The fleet in memory: every provider with its inventories and tags, and the custom vocabulary.

`apply` is the only way in, for a whole snapshot as for the changes of one batch.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import (
    SHARING_TRAIT,
    Described,
    Inventory,
    Provider,
    ProviderRecord,
    Tags,
    Vocable,
)
from moorage.core.ledger.packed import Shelf
from moorage.core.ledger.search.block import BLOCK_ROWS, SPARE_PART, Block, Entry, Place, uuid_at
from moorage.core.ledger.search.soundness import unsound
from moorage.core.ledger.search.summaries import Summaries

MANY = 64
"""From so many changed inventories in a block on, its summaries are derived anew from the rows."""

COMPARED = 1
"""Providers that are compared in one go."""

LOOKED_UP = 256
"""Providers that are looked up in one go."""


class Fleet:
    """All providers, arranged for searching. Never a source of truth: a copy of committed rows.

    `block_rows`: how many rows the search looks at in one go.
    """

    def __init__(
        self,
        standard_classes: frozenset[str],
        standard_traits: frozenset[str],
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self.standard_classes = standard_classes
        self.standard_traits = standard_traits
        self.classes: dict[str, Vocable] = {}
        self.traits: dict[str, Vocable] = {}
        self.blocks: list[Block] = []
        self.summaries = Summaries()
        self.places: dict[ProviderId, Place] = {}
        self.sharing: dict[ProviderId, None] = {}
        """Providers with the sharing trait, in the order in which they got it."""
        self.applied = 0
        """How often `apply` was called: who pauses compares, to see whether anything changed."""
        self._names: dict[str, ProviderId] = {}
        self._children: dict[ProviderId, dict[ProviderId, None]] = {}
        self._trait_uses: Counter[str] = Counter()
        self._roomy: list[Block] = []
        self._shelf = Shelf()
        self._version = 0
        self._block_rows = block_rows

    def has_class(self, name: str) -> bool:
        """Is it a standard resource class, or a custom one that exists?"""
        return name in self.standard_classes or name in self.classes

    def has_trait(self, name: str) -> bool:
        """Is it a standard trait, or a custom one that exists?"""
        return name in self.standard_traits or name in self.traits

    def trait_in_use(self, name: str) -> bool:
        """Has any provider the trait?"""
        return self._trait_uses[name] > 0

    @property
    def is_nested(self) -> bool:
        """Has any provider a child?"""
        return bool(self._children)

    def __len__(self) -> int:
        return len(self.places)

    def uuids(self) -> Iterable[ProviderId]:
        """All providers, in no particular order."""
        return self.places.keys()

    def record(self, provider: ProviderId) -> ProviderRecord | None:
        """Return everything known of a provider; None: there is no such provider."""
        place = self.places.get(provider)
        return None if place is None else place[0].records[place[1]]

    def named(self, name: str) -> ProviderId | None:
        """Return the provider of this name."""
        return self._names.get(name)

    def children_of(self, provider: ProviderId) -> list[ProviderId]:
        """Return the providers directly below this one."""
        return list(self._children.get(provider, ()))

    def tree_of(self, provider: ProviderId) -> list[ProviderId]:
        """Return every provider of the tree this one is in, itself included; [] if unknown."""
        place = self.places.get(provider)
        if place is None:
            return []
        block, row = place
        root = int(block.trees.root[row])
        return [uuid_at((block, member)) for member in block.trees.members(root)]

    def differences(self, other: "Fleet") -> list[str]:
        """Say, one line each, where the two do not hold and answer the same. [] when they do."""
        return [line for part in self.comparing(other) for line in part]

    def comparing(self, other: "Fleet") -> Iterator[list[str]]:
        """As `differences`, of `COMPARED` providers at a time.

        Between two parts both may follow further changes, if both do. The summaries of this one are
        compared with what its blocks hold.
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
        ours = list(self.places)
        for first in range(0, len(ours), COMPARED):
            some = ours[first : first + COMPARED]
            yield [line for uuid in some for line in self._compared(other, uuid)]
        theirs = list(other.places)
        for first in range(0, len(theirs), LOOKED_UP):
            some = [uuid for uuid in theirs[first : first + LOOKED_UP] if uuid not in self.places]
            yield [line for uuid in some for line in self._compared(other, uuid)]
        yield from unsound(self.summaries, self.blocks)

    def _compared(self, other: "Fleet", uuid: ProviderId) -> Iterator[str]:
        ours, theirs = self._image(uuid), other._image(uuid)
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                yield (
                    f"provider {uuid}: {key} is {ours.get(key)!r}, "
                    f"and {theirs.get(key)!r} in the other"
                )

    def fill(self, providers: list[Described]) -> None:
        """Add providers that are not there, quicker than `apply` does.

        Raises LookupError when a root is neither there nor among them: the rows are corrupt.
        """
        self._version += 1
        arriving: dict[ProviderId, list[Described]] = {}
        traits: Counter[frozenset[str]] = Counter()
        for one in providers:
            arriving.setdefault(one[0].root, []).append(one)
            traits[one[2].traits] += 1
            if SHARING_TRAIT in one[2].traits:
                self.sharing.setdefault(one[0].uuid)
        for names, count in traits.items():
            for name in names:
                self._trait_uses[name] += count
        entries: dict[Block, list[Entry]] = {}
        for root, members in arriving.items():
            if len(members) > 1:
                members.sort(key=lambda one: one[0].uuid != root)
            block = self._block_of(root, [one[0] for one in members])
            mine = entries.setdefault(block, [])
            for provider, inventories, tags in members:
                row = block.take()
                self.places[provider.uuid] = (block, row)
                self._link(provider)
                held = self._shelf.packed(inventories)
                record = ProviderRecord(provider, held, tags, self._version)
                mine.append((row, self.places[root][1], record))
        for block, those in entries.items():
            block.fill(those)

    def learn(self, classes: dict[str, Vocable], traits: dict[str, Vocable]) -> None:
        """Add custom classes and traits."""
        self.classes.update(classes)
        self.traits.update(traits)

    def apply(self, changes: Changes) -> None:
        """Follow committed changes; consumers are of no interest here.

        Raises LookupError when a provider's root is unknown: the rows are corrupt.
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
        """Rename a class wherever there is an inventory of it, one block at a time."""
        self._version += 1
        gauge = self.summaries.classes.pop(old, None)
        if gauge is not None:
            self.summaries.classes[new] = gauge
        for block in self.blocks:
            block.rename_class(old, new, self._version)
            yield

    def keeps_place(self, provider: Provider) -> bool:
        """Is it there, and would it stay where it is and be called as it is?"""
        record = self.record(provider.uuid)
        return record is not None and _stays(record.provider, provider)

    def dicts(self) -> list[dict[Any, Any]]:
        """Return what has an entry for every provider."""
        return [self.places, self._names, self._children]

    def _providers(self, images: dict[ProviderId, Provider | None]) -> dict[ProviderId, Provider]:
        """Remove, move and add providers; return those that keep their row and change inside."""
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
        # Who has left a root and come back to another of the same name still sits with the first.
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
        """Give rows to providers of one tree that have none, the root first."""
        members.sort(key=lambda provider: provider.uuid != root)
        block = self._block_of(root, members)
        self._version += 1
        for provider in members:
            row = block.take()
            self.places[provider.uuid] = (block, row)
            block.enter(row, self.places[root][1], provider, self._version)

    def _block_of(self, root: ProviderId, members: list[Provider]) -> Block:
        """Return the block of a tree, or one with room for it; the root is the first member."""
        place = self.places.get(root)
        if place is not None:
            return place[0]
        if members[0].uuid != root:
            raise LookupError(f"provider {members[0].uuid} has an unknown root {root}")
        return self._block_for(len(members))

    def _block_for(self, providers: int) -> Block:
        """Return a block with room for a new tree."""
        if self._roomy and self._roomy[0].has_room_for_tree(providers):
            return self._roomy[0]
        self._roomy = [block for block in self._roomy if block.has_room_for_tree(1)]
        for block in self._roomy:
            if block.has_room_for_tree(providers):
                return block
        size = max(self._block_rows, providers + providers // (SPARE_PART - 1) + 1)
        block = Block(size, len(self.blocks), self.summaries, self._shelf)
        self.blocks.append(block)
        self._roomy.append(block)
        return block

    def _remove(self, uuid: ProviderId) -> None:
        place = self.places.pop(uuid, None)
        if place is None:
            return
        block, row = place
        self._count_traits(uuid, block.record(row).tags.traits, frozenset())
        block.clear(row)
        if block not in self._roomy and block.has_room_for_tree(1):
            self._roomy.append(block)

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
        """Write what has changed inside of rows; what is of providers that are gone is dropped."""
        inventories: dict[ProviderId, dict[str, Inventory | None]] = {}
        for (uuid, name), inventory in changes.inventories.items():
            inventories.setdefault(uuid, {})[name] = inventory
        changed: Counter[Block] = Counter()
        if len(changes.inventories) >= MANY:
            for uuid, held in inventories.items():
                if uuid in self.places:
                    changed[self.places[uuid][0]] += len(held)
        blocks = [block for block, count in changed.items() if count >= MANY]
        for block in blocks:
            block.begin_many()
        try:
            for uuid in kept | inventories | changes.tags:
                if uuid in self.places:
                    self._write(
                        uuid, kept.get(uuid), changes.tags.get(uuid), inventories.get(uuid, {})
                    )
        finally:
            for block in blocks:
                block.end_many()

    def _write(
        self,
        uuid: ProviderId,
        provider: Provider | None,
        tags: Tags | None,
        inventories: Mapping[str, Inventory | None],
    ) -> None:
        block, row = self.places[uuid]
        if tags is not None:
            self._count_traits(uuid, block.record(row).tags.traits, tags.traits)
        self._version += 1
        block.write(row, self._version, provider, tags, inventories)

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
        """Return all that is known of a provider, as the records and as the columns have it."""
        place = self.places.get(uuid)
        if place is None:
            return {"presence": False}
        children = sorted(self.children_of(uuid))
        named = self.named(place[0].record(place[1]).provider.name)
        found = {"presence": True, "children": children, "bearer of its name": named}
        return found | place[0].image(place[1])


def _stays(old: Provider, new: Provider) -> bool:
    """Has nothing changed that the fleet is arranged by?"""
    return (
        old.name == new.name
        and old.parent == new.parent
        and old.root == new.root
        and old.created_at == new.created_at
    )


def _is_another(old: Provider, new: Provider) -> bool:
    """Was the provider deleted and one with the same UUID created within one batch?"""
    return old.created_at != new.created_at


def _merge(target: dict[str, Vocable], changes: dict[str, Vocable | None]) -> None:
    for name, vocable in changes.items():
        if vocable is None:
            target.pop(name, None)
        else:
            target[name] = vocable
