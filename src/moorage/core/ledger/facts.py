"""The facts that a decision may read, and the changes that it may make.

A use case names its `Keys`; the store loads them for a whole batch into one `Facts`. Each decision
reads the facts and returns `Changes`: absolute after-images, None for deleted rows. The transactor
applies them to the facts, so a later decision of the batch sees earlier ones; a refused request
changes nothing.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import (
    NO_TAGS,
    Consumer,
    CustomName,
    Inventory,
    Provider,
    Tags,
)

K = TypeVar("K")
V = TypeVar("V")

_none_used = partial(defaultdict[str, int], int)


@dataclass(slots=True)
class Keys:
    """The keys to load. Every member is a set; a batch loads the union of its requests' keys."""

    providers: set[ProviderId] = field(default_factory=set)
    """Providers with their inventories."""
    tags: set[ProviderId] = field(default_factory=set)
    """Providers whose traits and aggregates are needed."""
    names: set[str] = field(default_factory=set)
    """Provider names that must be known as free or taken."""
    parents: set[ProviderId] = field(default_factory=set)
    """Providers whose children must be known."""
    trees: set[ProviderId] = field(default_factory=set)
    """Providers whose whole tree is needed."""
    consumers: set[ConsumerId] = field(default_factory=set)
    """Consumers with their allocations, and the providers and inventories those are on."""
    classes: set[str] = field(default_factory=set)
    """Custom resource classes whose existence must be known."""
    traits: set[str] = field(default_factory=set)
    """Custom traits whose existence must be known."""
    class_uses: set[str] = field(default_factory=set)
    """Resource classes whose use by any inventory must be known."""
    trait_uses: set[str] = field(default_factory=set)
    """Traits whose use by any provider must be known."""
    holders: set[ProviderId] = field(default_factory=set)
    """Providers of which all consumers must be known, each with all its allocations."""
    crowded: set[ProviderId] = field(default_factory=set)
    """Those of `holders` to which consumers came while they were loaded: nobody else may now."""
    created_again: set[ConsumerId] = field(default_factory=set)
    """Those of `consumers` that are created again for their leases: none of these may end now."""
    returned: set[ConsumerId] = field(default_factory=set)
    """Those of `consumers` that leases return: nobody may create them again now."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        # Spelled out for speed, like `Changes.update`: every claim calls this.
        self.providers |= other.providers
        self.tags |= other.tags
        self.names |= other.names
        self.parents |= other.parents
        self.trees |= other.trees
        self.consumers |= other.consumers
        self.classes |= other.classes
        self.traits |= other.traits
        self.class_uses |= other.class_uses
        self.trait_uses |= other.trait_uses
        self.holders |= other.holders
        self.crowded |= other.crowded
        self.created_again |= other.created_again
        self.returned |= other.returned

    def includes(self, other: "Keys") -> bool:
        """Return whether everything that `other` names is named here, too."""
        return all(getattr(self, name) >= getattr(other, name) for name in self.__slots__)

    def __len__(self) -> int:
        """Return the number of keys."""
        named = len(self.providers) + len(self.tags) + len(self.names) + len(self.parents)
        named += len(self.trees) + len(self.consumers) + len(self.classes) + len(self.traits)
        return named + len(self.class_uses) + len(self.trait_uses) + len(self.holders)


class HoldersCame(NamedTuple):
    """Consumers came to providers of which all are needed, while these were loaded: load again."""

    keys: Keys


class Changes(Struct):
    """After-images, by key. None: deleted. Within a batch the last one counts."""

    providers: dict[ProviderId, Provider | None] = {}
    inventories: dict[tuple[ProviderId, str], Inventory | None] = {}
    tags: dict[ProviderId, Tags] = {}
    consumers: dict[ConsumerId, Consumer | None] = {}
    classes: dict[str, CustomName | None] = {}
    traits: dict[str, CustomName | None] = {}
    renamed_classes: dict[str, str] = {}
    """Old name to new name; applying it renames every inventory and allocation of the class."""
    places: dict[tuple[ProviderId, ConsumerId], int] = {}
    """The generation of a provider when a consumer got its first allocation there."""
    overwritten: dict[tuple[ProviderId, str], int] = {}
    """New totals of classes of managed providers that their agents must follow; 0: deleted."""

    def update(self, other: "Changes") -> None:
        """Merge the after-images of a later decision, which override those here."""
        self.providers.update(other.providers)
        self.inventories.update(other.inventories)
        self.tags.update(other.tags)
        self.consumers.update(other.consumers)
        self.classes.update(other.classes)
        self.traits.update(other.traits)
        self.renamed_classes.update(other.renamed_classes)
        self.places.update(other.places)
        self.overwritten.update(other.overwritten)

    @property
    def instants(self) -> int:
        """How many instants these changes use up.

        Each written row has its own, in the order of the requests, so that lists can be in the
        order of creation even within a batch.
        """
        return len(self.providers) + len(self.consumers) + len(self.classes) + len(self.traits)

    def __bool__(self) -> bool:
        return any(astuple(self))


@dataclass(slots=True)
class Facts:
    """The loaded rows of a batch, as changed by its decisions so far."""

    standard_classes: frozenset[str]
    standard_traits: frozenset[str]
    loaded: Keys = field(default_factory=Keys)
    """The requested keys."""
    providers: dict[ProviderId, Provider] = field(default_factory=dict)
    inventories: dict[ProviderId, dict[str, Inventory]] = field(default_factory=dict)
    tags: dict[ProviderId, Tags] = field(default_factory=dict)
    names: dict[str, ProviderId] = field(default_factory=dict)
    children: dict[ProviderId, set[ProviderId]] = field(default_factory=dict)
    consumers: dict[ConsumerId, Consumer] = field(default_factory=dict)
    classes: dict[str, CustomName] = field(default_factory=dict)
    traits: dict[str, CustomName] = field(default_factory=dict)
    class_uses: dict[str, int] = field(default_factory=_none_used)
    """Number of uses; if there are very many, some number that this batch cannot reduce to 0."""
    trait_uses: dict[str, int] = field(default_factory=_none_used)
    managed_classes: set[str] = field(default_factory=set)
    """Of those whose uses are known, the ones that providers of agents have."""
    holders_left_out: int = 0
    """How many consumers `Keys.holders` have, if they are too many; then `holders` is empty."""
    holders: dict[ProviderId, set[ConsumerId]] = field(default_factory=dict)
    """The consumers of each provider in `Keys.holders`, complete; empty if there are none."""

    def has_class(self, name: str) -> bool:
        """Is this a standard resource class, or an existing custom one that was loaded?"""
        return name in self.standard_classes or name in self.classes

    def has_trait(self, name: str) -> bool:
        """Is this a standard trait, or an existing custom one that was loaded?"""
        return name in self.standard_traits or name in self.traits

    def inventories_of(self, provider: ProviderId) -> dict[str, Inventory]:
        """Return the provider's inventories by resource class; do not modify the dict."""
        return self.inventories.get(provider, {})

    def tags_of(self, provider: ProviderId) -> Tags:
        """Return the provider's traits and aggregates."""
        return self.tags.get(provider, NO_TAGS)

    def before(self, changes: Changes) -> Changes:
        """Return the changes that undo these ones. Renamed classes are not supported."""
        return Changes(
            providers={uuid: self.providers.get(uuid) for uuid in changes.providers},
            inventories={
                (uuid, name): self.inventories_of(uuid).get(name)
                for uuid, name in changes.inventories
            },
            tags={uuid: self.tags_of(uuid) for uuid in changes.tags},
            consumers={uuid: self.consumers.get(uuid) for uuid in changes.consumers},
            classes={name: self.classes.get(name) for name in changes.classes},
            traits={name: self.traits.get(name) for name in changes.traits},
        )

    def apply(self, changes: Changes) -> None:
        """Make the changes of one decision visible to the next. Applying them twice is harmless."""
        for uuid, provider in changes.providers.items():
            self._provider(uuid, provider)
        for (uuid, name), inventory in changes.inventories.items():
            held = self.inventories.get(uuid)
            if inventory is not None and held is not None and name in held:  # as of every claim
                held[name] = inventory
            else:
                self._inventory(uuid, name, inventory)
        for uuid, tags in changes.tags.items():
            self._count_traits(uuid, tags)
            self.tags[uuid] = tags
        if self.holders:
            for consumer, after in changes.consumers.items():
                self._hold(consumer, after)
        _merge(self.consumers, changes.consumers)
        if changes.classes:
            _merge(self.classes, changes.classes)
        if changes.traits:
            _merge(self.traits, changes.traits)

    def _provider(self, uuid: ProviderId, provider: Provider | None) -> None:
        before = self.providers.pop(uuid, None)
        if before is not None:
            self.names.pop(before.name, None)
            if before.parent is not None and before.parent in self.children:
                self.children[before.parent].discard(uuid)
        if provider is None:
            self._count_traits(uuid, NO_TAGS)
            self.tags.pop(uuid, None)
            return
        self.providers[uuid] = provider
        self.names[provider.name] = uuid
        if provider.parent is not None:
            self.children.setdefault(provider.parent, set()).add(uuid)

    def _inventory(self, uuid: ProviderId, name: str, inventory: Inventory | None) -> None:
        held = self.inventories.setdefault(uuid, {})
        if inventory is None:
            if held.pop(name, None) is not None:
                self.class_uses[name] -= 1
            return
        if name not in held:
            self.class_uses[name] += 1
        held[name] = inventory

    def _hold(self, uuid: ConsumerId, after: Consumer | None) -> None:
        before = self.consumers.get(uuid)
        for left in before.allocations if before is not None else ():
            if left in self.holders:
                self.holders[left].discard(uuid)
        for entered in after.allocations if after is not None else ():
            if entered in self.holders:
                self.holders[entered].add(uuid)

    def _count_traits(self, uuid: ProviderId, tags: Tags) -> None:
        before = self.tags_of(uuid).traits
        for trait in tags.traits - before:
            self.trait_uses[trait] += 1
        for trait in before - tags.traits:
            self.trait_uses[trait] -= 1


def _merge(target: dict[K, V], changes: dict[K, V | None]) -> None:
    for key, value in changes.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value
