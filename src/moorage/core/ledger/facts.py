"""What a decision may read, and what it may change.

A use case names its `Keys`; the store loads them for a whole batch into one `Facts`. Each
decision reads the facts and returns `Changes`: absolute after-images, None for what is gone. The
transactor applies them to the facts, so a later decision of the batch sees what an earlier one
took; a refused request has changed nothing.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import (
    NO_TAGS,
    Consumer,
    Inventory,
    Provider,
    Tags,
    Vocable,
)

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Keys:
    """What to load. Every member is a set, so that a batch's keys are their union."""

    providers: set[ProviderId] = field(default_factory=set)
    """Providers with their inventories."""
    tags: set[ProviderId] = field(default_factory=set)
    """Providers whose traits and aggregates are needed."""
    names: set[str] = field(default_factory=set)
    """Provider names that must be known to be free or taken."""
    parents: set[ProviderId] = field(default_factory=set)
    """Providers whose children must be known."""
    trees: set[ProviderId] = field(default_factory=set)
    """Providers whose whole tree is needed."""
    consumers: set[ConsumerId] = field(default_factory=set)
    """Consumers with their allocations, and the providers and inventories those are on."""
    classes: set[str] = field(default_factory=set)
    """Custom resource classes that must be known to exist or not."""
    traits: set[str] = field(default_factory=set)
    """Custom traits that must be known to exist or not."""
    class_uses: set[str] = field(default_factory=set)
    """Resource classes of which must be known whether any inventory is left of them."""
    trait_uses: set[str] = field(default_factory=set)
    """Traits of which must be known whether any provider is left that has them."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        # Spelled out, and so is `Changes.update`: every claim comes by here.
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

    def __len__(self) -> int:
        """Return how many things are asked for."""
        return sum([len(getattr(self, name)) for name in self.__slots__])


@dataclass(slots=True)
class Changes:
    """After-images, by key. None: it is gone. Within a batch the last one counts."""

    providers: dict[ProviderId, Provider | None] = field(default_factory=dict)
    inventories: dict[tuple[ProviderId, str], Inventory | None] = field(default_factory=dict)
    tags: dict[ProviderId, Tags] = field(default_factory=dict)
    consumers: dict[ConsumerId, Consumer | None] = field(default_factory=dict)
    classes: dict[str, Vocable | None] = field(default_factory=dict)
    traits: dict[str, Vocable | None] = field(default_factory=dict)
    renamed_classes: dict[str, str] = field(default_factory=dict)
    """Old name to new; whoever applies it renames every inventory and allocation of the class."""

    def update(self, other: "Changes") -> None:
        """Let the after-images of a later decision override those here."""
        self.providers.update(other.providers)
        self.inventories.update(other.inventories)
        self.tags.update(other.tags)
        self.consumers.update(other.consumers)
        self.classes.update(other.classes)
        self.traits.update(other.traits)
        self.renamed_classes.update(other.renamed_classes)

    @property
    def instants(self) -> int:
        """How many instants these changes use up.

        Each thing that is made or written has one of its own, in the order of the requests, so
        that lists can be in the order of creation even within a batch.
        """
        return len(self.providers) + len(self.consumers) + len(self.classes) + len(self.traits)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)


@dataclass(slots=True)
class Facts:
    """What was loaded for a batch, as changed by its decisions so far."""

    standard_classes: frozenset[str]
    standard_traits: frozenset[str]
    providers: dict[ProviderId, Provider] = field(default_factory=dict)
    inventories: dict[ProviderId, dict[str, Inventory]] = field(default_factory=dict)
    tags: dict[ProviderId, Tags] = field(default_factory=dict)
    names: dict[str, ProviderId] = field(default_factory=dict)
    children: dict[ProviderId, set[ProviderId]] = field(default_factory=dict)
    consumers: dict[ConsumerId, Consumer] = field(default_factory=dict)
    classes: dict[str, Vocable] = field(default_factory=dict)
    traits: dict[str, Vocable] = field(default_factory=dict)
    class_uses: Counter[str] = field(default_factory=Counter)
    """How many uses there are; where there are very many, more than these facts can take away."""
    trait_uses: Counter[str] = field(default_factory=Counter)

    def has_class(self, name: str) -> bool:
        """Is it a standard resource class, or a custom one that was loaded and exists?"""
        return name in self.standard_classes or name in self.classes

    def has_trait(self, name: str) -> bool:
        """Is it a standard trait, or a custom one that was loaded and exists?"""
        return name in self.standard_traits or name in self.traits

    def inventories_of(self, provider: ProviderId) -> dict[str, Inventory]:
        """Return the provider's inventories by resource class; do not change the dict."""
        return self.inventories.get(provider, {})

    def tags_of(self, provider: ProviderId) -> Tags:
        """Return the provider's traits and aggregates."""
        return self.tags.get(provider, NO_TAGS)

    def before(self, changes: Changes) -> Changes:
        """Return what, applied after these changes, takes them back. Not for renamed classes."""
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
        """Make the changes of one decision visible to the next. To apply them twice is harmless."""
        for uuid, provider in changes.providers.items():
            self._provider(uuid, provider)
        for (uuid, name), inventory in changes.inventories.items():
            self._inventory(uuid, name, inventory)
        for uuid, tags in changes.tags.items():
            self._count_traits(uuid, tags)
            self.tags[uuid] = tags
        _merge(self.consumers, changes.consumers)
        _merge(self.classes, changes.classes)
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
