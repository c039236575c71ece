"""The cases of named slots: each writes an audit row, in the transaction of its change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Slot
from moorage.core.admission.slotted import changes as slots
from moorage.core.service_time import When
from moorage.service.access.audit import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class SlotsAdd(AuditedUseCase[None]):
    """Make slots in a pool with native slots."""

    pool: str
    names: list[str]
    labels: dict[str, str]
    by: Actor

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.pool}, touched={*self.names}))

    def decide(self, world: World, when: When) -> Changes:
        made = slots.add(world.admission, when.wall, self.pool, self.names, self.labels)
        names = sorted(name for _, name in made.slots)
        after = {"slots": names, "labels": self.labels}
        row = audit_entry(when.wall, self.by, "slot.add", self.pool, None, after)
        self.rows = [row] if names else []
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class SlotCase(AuditedUseCase[Slot | None]):
    """A change of one slot by an operator. Returns it; None: it is gone."""

    pool: str
    name: str
    by: Actor

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.pool}))

    def conclude(self, world: World, when: When) -> Slot | None:
        return world.admission.slots.get(self.pool, {}).get(self.name)

    def leave(
        self, action: str, when: When, made: tuple[AdmissionChanges, Slot, Slot | None]
    ) -> Changes:
        """Set the audit row of a decision, unless it changes nothing; return its changes."""
        changes, before, after = made
        target = f"{self.pool}/{self.name}"
        row = audit_entry(when.wall, self.by, action, target, _shown(before), _shown(after))
        self.rows = [row] if before != after else []
        return Changes(admission=changes)


@dataclass(slots=True)
class SlotLabel(SlotCase):
    """Replace the labels of a slot."""

    labels: Mapping[str, str]

    def decide(self, world: World, when: When) -> Changes:
        made = slots.label(world.admission, self.pool, self.name, self.labels)
        return self.leave("slot.label", when, made)


@dataclass(slots=True)
class SlotDrain(SlotCase):
    """Keep a slot from further grants."""

    keep: bool
    reason: str

    def decide(self, world: World, when: When) -> Changes:
        made = slots.drain(
            world.admission, when.wall, self.pool, self.name, keep=self.keep, reason=self.reason
        )
        return self.leave("slot.drain", when, made)


@dataclass(slots=True)
class SlotResume(SlotCase):
    """Let a drained slot be granted again."""

    def decide(self, world: World, when: When) -> Changes:
        made = slots.resume(world.admission, self.pool, self.name)
        return self.leave("slot.resume", when, made)


@dataclass(slots=True)
class SlotRemove(SlotCase):
    """Remove a free slot."""

    def decide(self, world: World, when: When) -> Changes:
        changes, before = slots.remove(world.admission, self.pool, self.name)
        return self.leave("slot.remove", when, (changes, before, None))


def _shown(slot: Slot | None) -> Any:
    """Return what operators change of a slot."""
    if slot is None:
        return None
    shown = {"labels": slot.labels, "owner": slot.owner, "drain": None, "reason": ""}
    if slot.drain is not None:
        shown |= {"drain": "goes" if slot.drain.goes else "stays", "reason": slot.drain.reason}
    return shown
