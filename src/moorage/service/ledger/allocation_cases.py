"""The use cases that change allocations, reshapes included; see `provider_cases.py`."""

from dataclasses import dataclass

from moorage.core.ids import ConsumerId
from moorage.core.ledger import (
    allocations,
    reshaper,
    vocabulary,
)
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.reshaper import Reshaped
from moorage.core.service_time import When
from moorage.service.batch.use_case import LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World

REQUESTS_LARGE = 1_000
"""A reshape with more consumers than this is a large request."""


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
            reshaper.reshape(world.ledger, when.stamp, self.inventories, self.requests), None
        )
