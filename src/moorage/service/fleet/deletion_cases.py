"""Use cases of the deletion of a group of reporters: at once the group, in units what it leaves."""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.core.clock import Instant
from moorage.core.fleet import deletion
from moorage.core.fleet.reporters import DeletedGroup
from moorage.core.ids import ProviderId
from moorage.core.ledger import traits_aggregates
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Reported
from moorage.core.service_time import When
from moorage.service.access.audit import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase, UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet.reporter_cases import group_keys


@dataclass(slots=True)
class GroupDelete(AuditedUseCase[None]):
    """Delete a group without live members that no pool follows."""

    group: str
    by: Actor

    def keys(self) -> Keys:
        """Name the group, and the pools whose limits depend on it."""
        return group_keys(self.group, pools=True)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        pools = world.admission.pools.values()
        following = [pool.name for pool in pools if pool.spec.member_group == self.group]
        made = deletion.delete(world.fleet, when, self.group, following)
        before = {
            "members": [name for _, name in made.members],
            "observed": [*world.fleet.reporter_groups[self.group].observed],
        }
        self.rows = [audit_entry(when.stamp, self.by, "reporters.delete", self.group, before)]
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class ClearUnit(UseCase[None]):
    """Remove some marks and pins of a deleted group; `last`: there are no others.

    It does nothing if another process has cleared the group since, or it was deleted again.
    """

    deleted: DeletedGroup
    marked: Sequence[ProviderId] = ()
    pinned: Sequence[ProviderId] = ()
    last: bool = False

    def keys(self) -> Keys:
        """Name the group, providers with their marks, and pins."""
        nodes = set(self.marked)
        ledger = LedgerKeys(providers={*nodes}, tags=nodes)
        return group_keys(self.deleted.name, self.pinned, ledger)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        if not deletion.is_same(world.fleet, self.deleted):
            return Changes()
        marks = LedgerChanges()
        for uuid in self.marked:
            if uuid in world.ledger.providers:
                at, nothing = Instant(when.stamp + marks.instants), Reported(self.deleted.name)
                marks.update(traits_aggregates.set_reported(world.ledger, at, uuid, nothing))
        made = deletion.clear_pins(world.fleet, self.deleted, self.pinned)
        if self.last:
            made.update(deletion.cleared(self.deleted))
        return Changes(ledger=marks, fleet=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class ForgetDeleted(UseCase[None]):
    """Forget a group that was deleted long ago."""

    deleted: DeletedGroup

    def keys(self) -> Keys:
        """Name the group."""
        return group_keys(self.deleted.name)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        return Changes(fleet=deletion.forget(world.fleet, when, self.deleted.name))

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""
