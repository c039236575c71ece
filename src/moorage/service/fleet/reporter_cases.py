"""Use cases of reporters: they join, stay and leave; what observers see; pins; reports."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import Struct

from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import deletion, members, ownership
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.reporters import DeletedGroup, Member, Pass, ReporterGroup
from moorage.core.ids import ProviderId
from moorage.core.ledger import reported, traits_aggregates, vocabulary
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Reported
from moorage.core.ledger.reported import Mode, Node, NodeAnswer, ReportOutcome
from moorage.core.limits import PINS_MAX
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase, LedgerUseCase, UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.access.audit import AuditRow


class Membership(Struct, frozen=True):
    """A member, its group, and the names of all live members."""

    member: Member
    group: ReporterGroup
    live: list[str]


class Told(Struct, frozen=True):
    """A member's summary of its last pass, which ended `age` microseconds ago."""

    age: int
    nodes: int
    refused: Mapping[str, int]


@dataclass(slots=True)
class Join(UseCase[Membership]):
    """Let a member join its group, or stay in it."""

    group: str
    name: str
    instance: str
    ttl: int
    last_pass: Told | None = None
    renew: bool = False

    def keys(self) -> Keys:
        """Name the group, and the pools whose limits depend on it."""
        return group_keys(self.group, pools=True)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        asked = (self.group, self.name, self.instance, self.ttl)
        made = members.join(world.fleet, when, *asked, renew=self.renew)
        told = self.last_pass
        if told is not None:
            last = Pass(Instant(when.moment.alive - told.age), told.nodes, dict(told.refused))
            members.with_pass(made, self.group, self.name, last)
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> Membership:
        """Return the member; raises FENCED if a later instance of the batch has replaced it."""
        facts = world.fleet
        member = facts.members.get((self.group, self.name))
        if member is None or member.instance != self.instance:
            raise members.fenced(self.group, self.name)
        group = facts.reporter_groups[self.group]
        live = [one for (name, _), one in facts.members.items() if name == self.group]
        return Membership(member, group, members.live(live, when.moment))


@dataclass(slots=True)
class Leave(UseCase[None]):
    """Let a member leave its group."""

    group: str
    name: str
    instance: str | None

    def keys(self) -> Keys:
        """Name the group, and the pools whose limits depend on it."""
        return group_keys(self.group, pools=True)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        return Changes(fleet=members.leave(world.fleet, self.group, self.name, self.instance))

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class Observe(UseCase[ReporterGroup]):
    """Replace the members that somebody else observes. Answer: the group."""

    group: str
    names: Sequence[str]
    seen_at: Instant
    error: str

    def keys(self) -> Keys:
        """Name the group, and the pools whose limits depend on it."""
        return group_keys(self.group, pools=True)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        seen = (self.names, self.seen_at, self.error)
        return Changes(fleet=members.observe(world.fleet, when, self.group, *seen))

    def conclude(self, world: World, when: When) -> ReporterGroup:
        """Return the group. Raises GROUP_NOT_FOUND: a later case of the batch has deleted it."""
        return members.find_group(world.fleet, self.group)


@dataclass(slots=True)
class PinNodes(AuditedUseCase[ReporterGroup]):
    """Pin nodes to a member, or remove their pins. Answer: the group."""

    group: str
    nodes: Sequence[ProviderId]
    member: str | None
    by: Actor

    def __post_init__(self) -> None:
        if len(self.nodes) > PINS_MAX:  # before they are loaded
            raise Error(Code.LIMIT_EXCEEDED, f"At most {PINS_MAX} nodes can be pinned at once.")

    def keys(self) -> Keys:
        """Name the group, and the pins of the nodes."""
        return group_keys(self.group, self.nodes)

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes."""
        made = ownership.pin(world.fleet, when, self.group, self.nodes, self.member)
        self.rows = []
        if made:
            after = {"member": self.member, "nodes": len(made.pins)}
            entry = ("reporters.pin", self.group, None, after)
            self.rows = [audit_entry(when.stamp, self.by, *entry)]
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> ReporterGroup:
        """Return the group. Raises GROUP_NOT_FOUND: a later case of the batch has deleted it."""
        return members.find_group(world.fleet, self.group)


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a report, and its mode."""

    group: str
    member: str
    token: str
    mode: Mode


@dataclass(slots=True)
class ReportUnit(LedgerUseCase[list[NodeAnswer]]):
    """Some nodes of a report. Answer: all outcomes.

    Who owns them is decided again here: another member may have taken over since the last unit.
    """

    sender: Sender
    nodes: Sequence[Node]
    actor: Actor
    counts: Counter[ReportOutcome] = field(default_factory=Counter)
    """Number of nodes by outcome."""

    def keys(self) -> Keys:
        """Name providers, names, children of what is gone, custom classes and traits, pins."""
        keys = LedgerKeys()
        for node in self.nodes:
            keys.providers.add(node.uuid)
            keys.tags.add(node.uuid)
            if node.absent:
                keys.parents.add(node.uuid)
            if node.name is not None:
                keys.names.add(node.name)
            keys.classes.update(vocabulary.customs(node.inventories or ()))
            keys.traits.update(vocabulary.customs(node.traits or ()))
        found = group_keys(self.sender.group, (node.uuid for node in self.nodes), keys)
        assert found.fleet is not None
        found.fleet.roots.update(node.uuid for node in self.nodes)
        return found

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes of all nodes that are not refused. Raises `Error`: FENCED."""
        sender = self.sender
        members.check_current(world.fleet, sender.group, sender.member, sender.token)
        owners = ownership.owners(world.fleet, sender.group, when.moment)
        changes = LedgerChanges()
        answers: list[NodeAnswer] = []
        for node in self.nodes:
            try:
                owners.check(node.uuid, sender.member)
            except Error as refusal:
                provider = world.ledger.providers.get(node.uuid)
                generation = None if provider is None else provider.generation
                error = refusal.with_traceback(None)
                answers.append(reported.refused(node.uuid, error, generation))
                continue
            at = Instant(when.stamp + changes.instants)
            made, answer = reported.apply(world.ledger, at, sender.group, sender.mode, node)
            changes.update(made)
            answers.append(answer)
        self.counts = Counter(each.outcome for each in answers)
        return self.decided(changes, answers)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return one row with the number of each outcome, if anything is changed."""
        if not any(
            self.counts[kind]
            for kind in (ReportOutcome.CREATED, ReportOutcome.UPDATED, ReportOutcome.REMOVED)
        ):
            return []
        after = {kind.value: self.counts[kind] for kind in ReportOutcome}
        target = f"{self.sender.group}/{self.sender.member}"
        return [audit_entry(now, self.actor, "reporters.report", target, after=after)]


def group_keys(
    group: str,
    nodes: Iterable[ProviderId] = (),
    ledger: LedgerKeys | None = None,
    *,
    pools: bool = False,
) -> Keys:
    """Name a group, some of its pins, keys of the ledger, and the pools that follow the group."""
    fleet = FleetKeys(reporters={group}, pins={(group, node) for node in nodes})
    admission = AdmissionKeys(member_groups={group}) if pools else None
    return Keys(LedgerKeys() if ledger is None else ledger, admission, fleet)


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

    is_followed: ClassVar[bool] = True
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
