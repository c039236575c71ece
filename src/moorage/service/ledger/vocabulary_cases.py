"""The use cases that change custom resource classes and traits; see `provider_cases.py`."""

from dataclasses import dataclass
from typing import ClassVar

from moorage.core.ledger import (
    vocabulary,
)
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import CustomName
from moorage.core.service_time import When
from moorage.service.batch.use_case import LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World


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
