"""The use cases that change the ledger: the keys that each needs, and the rule that decides it.

Submit one with `await transactor.submit(use_case)`; the answer is the result of its decision.
A refused one raises `Error`, and none of its changes is applied.
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
"""A reshape with more consumers than this is a large request."""


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

    `free` allows any valid move (from microversion 1.37 on); without it only a provider without a
    parent can get one. Answer: the provider.
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
    """Replace all inventories of a provider. Answer: its state afterwards."""

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
    """Add an inventory to a provider. Answer: its state afterwards."""

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
    """Change one inventory of a provider. Answer: its state afterwards."""

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
    """Delete one inventory of a provider; refused while it has allocations."""

    provider: ProviderId
    resource_class: str

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return inventory.delete(facts, now, self.provider, self.resource_class), None


@dataclass(slots=True)
class InventoriesDelete(UseCase[None]):
    """Delete all inventories of a provider; refused while any has allocations."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(providers={self.provider})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return inventory.delete_all(facts, now, self.provider), None


@dataclass(slots=True)
class TraitsReplace(UseCase[TagState]):
    """Replace all traits of a provider. Answer: its state afterwards."""

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
    """Remove all traits from a provider."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(providers={self.provider}, tags={self.provider})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return traits_aggregates.delete_traits(facts, now, self.provider), None


@dataclass(slots=True)
class AggregatesReplace(UseCase[TagState]):
    """Replace all aggregates of a provider; see `traits_aggregates.replace_aggregates`."""

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
    """Create a custom resource class; refused if it exists. Answer: the class."""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, CustomName]:
        return vocabulary.class_create(facts, now, self.name)


@dataclass(slots=True)
class ClassEnsure(UseCase[bool]):
    """Create a custom resource class unless it exists. Answer: whether it was created."""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, bool]:
        return vocabulary.class_ensure(facts, now, self.name)


@dataclass(slots=True)
class ClassRename(UseCase[CustomName]):
    """Rename a custom resource class and all its uses. Answer: the class."""

    alone: ClassVar[bool] = True

    old: str
    new: str

    def keys(self) -> Keys:
        # All its uses are renamed, loaded or not: no other request may write any of them.
        return Keys(classes={self.old, self.new}, class_uses={self.old})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, CustomName]:
        return vocabulary.class_rename(facts, now, self.old, self.new)


@dataclass(slots=True)
class ClassDelete(UseCase[None]):
    """Delete a custom resource class without inventories."""

    name: str

    def keys(self) -> Keys:
        return Keys(classes={self.name}, class_uses=vocabulary.customs([self.name]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return vocabulary.class_delete(facts, self.name), None


@dataclass(slots=True)
class TraitEnsure(UseCase[tuple[CustomName, bool]]):
    """Create a custom trait unless it exists. Answer: the trait, and whether it was created."""

    name: str

    def keys(self) -> Keys:
        return Keys(traits={self.name})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, tuple[CustomName, bool]]:
        return vocabulary.trait_ensure(facts, now, self.name)


@dataclass(slots=True)
class TraitDelete(UseCase[None]):
    """Delete a custom trait that no provider has."""

    name: str

    def keys(self) -> Keys:
        return Keys(traits={self.name}, trait_uses=vocabulary.customs([self.name]))

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return vocabulary.trait_delete(facts, self.name), None


@dataclass(slots=True)
class AllocationsReplace(UseCase[None]):
    """Replace the allocations of consumers; all of them or none."""

    requests: list[ConsumerRequest]

    def keys(self) -> Keys:
        return allocations.keys_for(self.requests)

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return allocations.replace_for(facts, now, self.requests), None


@dataclass(slots=True)
class AllocationsDelete(UseCase[None]):
    """Delete all allocations of a consumer."""

    consumer: ConsumerId

    def keys(self) -> Keys:
        return Keys(consumers={self.consumer})

    def decide(self, facts: Facts, now: Instant) -> tuple[Changes, None]:
        return allocations.delete_for(facts, now, self.consumer), None


@dataclass(slots=True)
class Reshape(UseCase[None]):
    """Move inventories together with the allocations on them; all or nothing."""

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
