"""The use cases that change the ledger: which keys each needs, and who decides it.

Submit one with `await transactor.submit(use_case)`; the answer is what its decision returns.
Every one raises `Error` when it is refused; then nothing of it was applied.
"""

from dataclasses import dataclass
from typing import ClassVar

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger import (
    allocations,
    inventory,
    providers,
    reshape,
    traits_aggregates,
    vocabulary,
)
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes, Facts, Keys
from moorage.core.ledger.inventory import InventorySpec, InventoryState
from moorage.core.ledger.model import CustomName, Provider
from moorage.core.ledger.reshape import Reshaped
from moorage.core.ledger.traits_aggregates import TagState
from moorage.service.batch.use_case import UseCase

REQUESTS_LARGE = 1_000
"""Consumers in one request from which on it is a large one."""


@dataclass(slots=True)
class ProviderCreate(UseCase[Provider]):
    """Add a provider; `uuid` is chosen by the caller. Answer: the provider."""

    uuid: ProviderId
    name: str
    parent: ProviderId | None = None

    def keys(self) -> Keys:
        known = {self.uuid} if self.parent is None else {self.uuid, self.parent}
        return Keys(providers=known, names={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, Provider]:
        return providers.create(facts, now, self.uuid, self.name, self.parent)


@dataclass(slots=True)
class ProviderUpdate(UseCase[Provider]):
    """Rename a provider and, with `move`, give it `parent` (None: make it a root).

    `free` allows any move within the rules (microversion 1.37 on); without it a parent can only
    be given to a provider that has none. Answer: the provider.
    """

    uuid: ProviderId
    name: str
    move: bool = False
    parent: ProviderId | None = None
    free: bool = False

    def keys(self) -> Keys:
        keys = Keys(providers={self.uuid}, names={self.name})
        if self.move:
            keys.trees.add(self.uuid)
            if self.parent is not None:
                keys.trees.add(self.parent)
                keys.providers.add(self.parent)
        return keys

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, Provider]:
        return providers.update(facts, now, self.uuid, self.name, self.move, self.parent, self.free)


@dataclass(slots=True)
class ProviderDelete(UseCase[None]):
    """Remove a provider with its inventories and tags. Refused with children or allocations."""

    uuid: ProviderId

    def keys(self) -> Keys:
        return Keys(providers={self.uuid}, tags={self.uuid}, parents={self.uuid})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return providers.delete(facts, self.uuid), None


@dataclass(slots=True)
class InventoriesReplace(UseCase[InventoryState]):
    """Let a provider offer exactly `inventories`. Answer: its state afterwards."""

    provider: ProviderId
    generation: int
    inventories: dict[str, InventorySpec]
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, classes=vocabulary.customs(self.inventories))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, InventoryState]:
        return inventory.replace_all(
            facts, now, self.provider, self.generation, self.inventories, self.full_reserve
        )


@dataclass(slots=True)
class InventoryCreate(UseCase[InventoryState]):
    """Let a provider offer one more resource class. Answer: its state afterwards."""

    provider: ProviderId
    resource_class: str
    spec: InventorySpec
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, InventoryState]:
        return inventory.create(
            facts, now, self.provider, self.resource_class, self.spec, self.full_reserve
        )


@dataclass(slots=True)
class InventoryUpdate(UseCase[InventoryState]):
    """Change what a provider offers of one resource class. Answer: its state afterwards."""

    provider: ProviderId
    resource_class: str
    generation: int
    spec: InventorySpec
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, InventoryState]:
        return inventory.update(
            facts,
            now,
            self.provider,
            self.resource_class,
            self.generation,
            self.spec,
            self.full_reserve,
        )


@dataclass(slots=True)
class InventoryDelete(UseCase[None]):
    """Stop offering one resource class; refused while it is allocated."""

    provider: ProviderId
    resource_class: str

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return inventory.delete(facts, now, self.provider, self.resource_class), None


@dataclass(slots=True)
class InventoriesDelete(UseCase[None]):
    """Stop offering anything; refused while any of it is allocated."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(providers={self.provider})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return inventory.delete_all(facts, now, self.provider), None


@dataclass(slots=True)
class TraitsReplace(UseCase[TagState]):
    """Give a provider exactly these traits. Answer: its state afterwards."""

    provider: ProviderId
    generation: int
    traits: frozenset[str]

    def keys(self) -> Keys:
        return Keys(
            providers={self.provider},
            tags={self.provider},
            traits=vocabulary.customs(self.traits),
        )

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, TagState]:
        return traits_aggregates.replace_traits(
            facts, now, self.provider, self.generation, self.traits
        )


@dataclass(slots=True)
class TraitsDelete(UseCase[None]):
    """Take all traits from a provider."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, tags={self.provider})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return traits_aggregates.delete_traits(facts, now, self.provider), None


@dataclass(slots=True)
class AggregatesReplace(UseCase[TagState]):
    """Put a provider into exactly these aggregates; see `tags.replace_aggregates`."""

    provider: ProviderId
    aggregates: frozenset[AggregateId]
    generation: int | None = None

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, tags={self.provider})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, TagState]:
        return traits_aggregates.replace_aggregates(
            facts, now, self.provider, self.aggregates, self.generation
        )


@dataclass(slots=True)
class ClassCreate(UseCase[CustomName]):
    """Make a custom resource class known; refused when it is. Answer: the class."""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, CustomName]:
        return vocabulary.class_create(facts, now, self.name)


@dataclass(slots=True)
class ClassEnsure(UseCase[bool]):
    """Make a custom resource class known unless it is. Answer: was it made now?"""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, bool]:
        return vocabulary.class_ensure(facts, now, self.name)


@dataclass(slots=True)
class ClassRename(UseCase[CustomName]):
    """Rename a custom resource class and everything that is of it. Answer: the class."""

    alone: ClassVar[bool] = True

    old: str
    new: str

    def keys(self) -> Keys:
        # Its uses are renamed, known or not: nobody else may be about to write them.
        return Keys(classes={self.old, self.new}, class_uses={self.old})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, CustomName]:
        return vocabulary.class_rename(facts, now, self.old, self.new)


@dataclass(slots=True)
class ClassDelete(UseCase[None]):
    """Remove a custom resource class that no inventory is of."""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name}, class_uses=vocabulary.customs([self.name]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return vocabulary.class_delete(facts, self.name), None


@dataclass(slots=True)
class TraitEnsure(UseCase[tuple[CustomName, bool]]):
    """Make a custom trait known unless it is. Answer: the trait, and was it made now?"""

    name: str

    def keys(self) -> Keys:
        return Keys(traits={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, tuple[CustomName, bool]]:
        return vocabulary.trait_ensure(facts, now, self.name)


@dataclass(slots=True)
class TraitDelete(UseCase[None]):
    """Remove a custom trait that no provider has."""

    name: str

    def keys(self) -> Keys:
        return Keys(traits={self.name}, trait_uses=vocabulary.customs([self.name]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return vocabulary.trait_delete(facts, self.name), None


@dataclass(slots=True)
class AllocationsReplace(UseCase[None]):
    """Let each consumer hold exactly what its request says; all of them or none."""

    requests: list[ConsumerRequest]

    def keys(self) -> Keys:
        return allocations.keys_for(self.requests)

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return allocations.replace_for(facts, now, self.requests), None


@dataclass(slots=True)
class AllocationsDelete(UseCase[None]):
    """Give back everything a consumer holds."""

    consumer: ConsumerId

    def keys(self) -> Keys:
        return Keys(consumers={self.consumer})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return allocations.delete_for(facts, now, self.consumer), None


@dataclass(slots=True)
class Reshape(UseCase[None]):
    """Move inventories and the allocations on them together; all of it or nothing."""

    inventories: Reshaped
    requests: list[ConsumerRequest]

    @property
    def large(self) -> bool:
        return len(self.requests) > REQUESTS_LARGE

    def keys(self) -> Keys:
        keys = allocations.keys_for(self.requests)
        keys.providers.update(self.inventories)
        for _, specs in self.inventories.values():
            keys.classes.update(vocabulary.customs(specs))
        return keys

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return reshape.reshape(facts, now, self.inventories, self.requests), None
