"""The use cases that change providers: inventories, traits and aggregates included.

Submit one with `await transactor.submit(use_case)`, which returns its answer. A refused one raises
`Error`, and none of its changes is applied.
"""

from dataclasses import dataclass
from typing import TypeVar

from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger import (
    inventory,
    providers,
    traits_aggregates,
    vocabulary,
)
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.inventory import InventorySpec, InventoryState
from moorage.core.ledger.model import Provider
from moorage.core.ledger.traits_aggregates import TagState
from moorage.core.service_time import When
from moorage.service.batch.use_case import LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World

A = TypeVar("A")


@dataclass(slots=True)
class ProviderCreate(LedgerUseCase[Provider]):
    """Add a provider; `uuid` is chosen by the caller. Answer: the provider."""

    uuid: ProviderId
    name: str
    parent: ProviderId | None = None

    def keys(self) -> Keys:
        known = {self.uuid} if self.parent is None else {self.uuid, self.parent}
        ledger = LedgerKeys(providers=known, names={self.name})
        return Keys(ledger, fleet=FleetKeys(roots={self.uuid}))

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
class _InventoryCase(LedgerUseCase[A]):
    """A change of one inventory of a provider."""

    provider: ProviderId
    resource_class: str

    def keys(self) -> Keys:
        return Keys(
            LedgerKeys(providers={self.provider}, classes=vocabulary.customs([self.resource_class]))
        )


@dataclass(slots=True)
class InventoryCreate(_InventoryCase[InventoryState]):
    """Add an inventory to a provider. Answer: its state afterwards."""

    spec: InventorySpec
    full_reserve: bool = True

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
class InventoryUpdate(_InventoryCase[InventoryState]):
    """Change one inventory of a provider. Answer: its state afterwards."""

    generation: int
    spec: InventorySpec
    full_reserve: bool = True

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
class InventoryDelete(_InventoryCase[None]):
    """Delete one inventory of a provider; refused while it has allocations."""

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
