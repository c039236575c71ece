"""The use cases that change the ledger: the keys that each needs, and the rule that decides it.

Submit one with `await transactor.submit(use_case)`; the answer is the result of its decision.
A refused one raises `Error`, and none of its changes is applied.
"""

from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

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
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.inventory import InventorySpec, InventoryState
from moorage.core.ledger.model import CustomName, Provider
from moorage.core.ledger.reshape import Reshaped
from moorage.core.ledger.traits_aggregates import TagState
from moorage.core.service_time import When
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World

REQUESTS_LARGE = 1_000
"""A reshape with more consumers than this is a large request."""


A = TypeVar("A")


@dataclass(slots=True)
class LedgerUseCase(UseCase[A]):
    """A change of the ledger alone: its answer is known when it is decided."""

    answer: A = field(init=False, repr=False, compare=False)

    def decided(self, made: LedgerChanges, answer: A) -> Changes:
        """Keep the answer of a decision; return its changes."""
        self.answer = answer
        return Changes(ledger=made)

    def conclude(self, world: World, when: When) -> A:
        """Return the answer of the decision."""
        return self.answer


@dataclass(slots=True)
class ProviderCreate(LedgerUseCase[Provider]):
    """Add a provider; `uuid` is chosen by the caller. Answer: the provider."""

    uuid: ProviderId
    name: str
    parent: ProviderId | None = None

    def keys(self) -> Keys:
        known = {self.uuid} if self.parent is None else {self.uuid, self.parent}
        return Keys(LedgerKeys(providers=known, names={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *providers.create(world.ledger, when.stamp, self.uuid, self.name, self.parent)
        )


@dataclass(slots=True)
class ProviderUpdate(LedgerUseCase[Provider]):
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
        keys = LedgerKeys(providers={self.uuid}, names={self.name})
        if self.move:
            keys.trees.add(self.uuid)
            if self.parent is not None:
                keys.trees.add(self.parent)
                keys.providers.add(self.parent)
        return Keys(keys)

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *providers.update(
                world.ledger, when.stamp, self.uuid, self.name, self.move, self.parent, self.free
            )
        )


@dataclass(slots=True)
class ProviderDelete(LedgerUseCase[None]):
    """Remove a provider with its inventories and tags. Refused with children or allocations."""

    uuid: ProviderId

    def keys(self) -> Keys:
        return Keys(LedgerKeys(providers={self.uuid}, tags={self.uuid}, parents={self.uuid}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(providers.delete(world.ledger, self.uuid), None)


@dataclass(slots=True)
class InventoriesReplace(LedgerUseCase[InventoryState]):
    """Replace all inventories of a provider. Answer: its state afterwards."""

    provider: ProviderId
    generation: int
    inventories: dict[str, InventorySpec]
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(providers={self.provider}, classes=vocabulary.customs(self.inventories))
        )

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *inventory.replace_all(
                world.ledger,
                when.stamp,
                self.provider,
                self.generation,
                self.inventories,
                self.full_reserve,
            )
        )


@dataclass(slots=True)
class InventoryCreate(LedgerUseCase[InventoryState]):
    """Add an inventory to a provider. Answer: its state afterwards."""

    provider: ProviderId
    resource_class: str
    spec: InventorySpec
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))
        )

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *inventory.create(
                world.ledger,
                when.stamp,
                self.provider,
                self.resource_class,
                self.spec,
                self.full_reserve,
            )
        )


@dataclass(slots=True)
class InventoryUpdate(LedgerUseCase[InventoryState]):
    """Change one inventory of a provider. Answer: its state afterwards."""

    provider: ProviderId
    resource_class: str
    generation: int
    spec: InventorySpec
    full_reserve: bool = True

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))
        )

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *inventory.update(
                world.ledger,
                when.stamp,
                self.provider,
                self.resource_class,
                self.generation,
                self.spec,
                self.full_reserve,
            )
        )


@dataclass(slots=True)
class InventoryDelete(LedgerUseCase[None]):
    """Delete one inventory of a provider; refused while it has allocations."""

    provider: ProviderId
    resource_class: str

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))
        )

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            inventory.delete(world.ledger, when.stamp, self.provider, self.resource_class), None
        )


@dataclass(slots=True)
class InventoriesDelete(LedgerUseCase[None]):
    """Delete all inventories of a provider; refused while any has allocations."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(LedgerKeys(providers={self.provider}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(inventory.delete_all(world.ledger, when.stamp, self.provider), None)


@dataclass(slots=True)
class TraitsReplace(LedgerUseCase[TagState]):
    """Replace all traits of a provider. Answer: its state afterwards."""

    provider: ProviderId
    generation: int
    traits: frozenset[str]

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(
                providers={self.provider},
                tags={self.provider},
                traits=vocabulary.customs(self.traits),
            )
        )

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *traits_aggregates.replace_traits(
                world.ledger, when.stamp, self.provider, self.generation, self.traits
            )
        )


@dataclass(slots=True)
class TraitsDelete(LedgerUseCase[None]):
    """Remove all traits from a provider."""

    provider: ProviderId

    def keys(self) -> Keys:
        return Keys(LedgerKeys(providers={self.provider}, tags={self.provider}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            traits_aggregates.delete_traits(world.ledger, when.stamp, self.provider), None
        )


@dataclass(slots=True)
class AggregatesReplace(LedgerUseCase[TagState]):
    """Replace all aggregates of a provider; see `traits_aggregates.replace_aggregates`."""

    provider: ProviderId
    aggregates: frozenset[AggregateId]
    generation: int | None = None

    def keys(self) -> Keys:
        return Keys(LedgerKeys(providers={self.provider}, tags={self.provider}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            *traits_aggregates.replace_aggregates(
                world.ledger, when.stamp, self.provider, self.aggregates, self.generation
            )
        )


@dataclass(slots=True)
class ClassCreate(LedgerUseCase[CustomName]):
    """Create a custom resource class; refused if it exists. Answer: the class."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(classes={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(*vocabulary.class_create(world.ledger, when.stamp, self.name))


@dataclass(slots=True)
class ClassEnsure(LedgerUseCase[bool]):
    """Create a custom resource class unless it exists. Answer: whether it was created."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(classes={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(*vocabulary.class_ensure(world.ledger, when.stamp, self.name))


@dataclass(slots=True)
class ClassRename(LedgerUseCase[CustomName]):
    """Rename a custom resource class and all its uses. Answer: the class."""

    alone: ClassVar[bool] = True

    old: str
    new: str

    def keys(self) -> Keys:
        # All its uses are renamed, loaded or not: no other request may write any of them.
        return Keys(LedgerKeys(classes={self.old, self.new}, class_uses={self.old}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(*vocabulary.class_rename(world.ledger, when.stamp, self.old, self.new))


@dataclass(slots=True)
class ClassDelete(LedgerUseCase[None]):
    """Delete a custom resource class without inventories."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(classes={self.name}, class_uses=vocabulary.customs([self.name])))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(vocabulary.class_delete(world.ledger, self.name), None)


@dataclass(slots=True)
class TraitEnsure(LedgerUseCase[tuple[CustomName, bool]]):
    """Create a custom trait unless it exists. Answer: the trait, and whether it was created."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(traits={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(*vocabulary.trait_ensure(world.ledger, when.stamp, self.name))


@dataclass(slots=True)
class TraitDelete(LedgerUseCase[None]):
    """Delete a custom trait that no provider has."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(traits={self.name}, trait_uses=vocabulary.customs([self.name])))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(vocabulary.trait_delete(world.ledger, self.name), None)


@dataclass(slots=True)
class AllocationsReplace(LedgerUseCase[None]):
    """Replace the allocations of consumers; all of them or none."""

    requests: list[ConsumerRequest]

    def keys(self) -> Keys:
        return Keys(allocations.keys_for(self.requests))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(allocations.replace_for(world.ledger, when.stamp, self.requests), None)


@dataclass(slots=True)
class AllocationsDelete(LedgerUseCase[None]):
    """Delete all allocations of a consumer."""

    consumer: ConsumerId

    def keys(self) -> Keys:
        return Keys(LedgerKeys(consumers={self.consumer}))

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(allocations.delete_for(world.ledger, when.stamp, self.consumer), None)


@dataclass(slots=True)
class Reshape(LedgerUseCase[None]):
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
        return Keys(keys)

    def decide(self, world: World, when: When) -> Changes:
        return self.decided(
            reshape.reshape(world.ledger, when.stamp, self.inventories, self.requests), None
        )
