"""Use cases of liveness: agents that fall silent or return, and groups whose network is suspect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import liveness
from moorage.core.fleet.agents import find
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.liveness import GroupCount
from moorage.core.fleet.model import Agent, Group, Liveness
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet.agent_cases import AgentCase, followed, ledger_keys

SERVER = Actor("moorage", None, "")
"""The author of changes that only depend on time."""


@dataclass(slots=True)
class LivenessSweep(AuditedUseCase[None]):
    """Apply what silence makes of some agents; the ledger follows."""

    is_followed: ClassVar[bool] = True
    silent: Sequence[tuple[Agent, Liveness]]
    """The agents as the caller knows them, with the liveness that follows from their silence."""
    counts: Mapping[str, GroupCount]
    """Of the groups in which an agent would become lost."""
    braked: bool = True

    def keys(self) -> Keys:
        return Keys(
            ledger_keys(agent for agent, _ in self.silent),
            fleet=FleetKeys(
                agents={agent.uuid for agent, _ in self.silent}, changed=set(self.counts)
            ),
        )

    def decide(self, world: World, when: When) -> Changes:
        found = {agent.uuid: liveness for agent, liveness in self.silent}
        made = liveness.swept(world.fleet, when.stamp, found, self.counts, braked=self.braked)
        self.rows = [
            audit_entry(
                when.stamp, SERVER, "group.suspect", name, after=self.counts[name]._asdict()
            )
            for name in sorted(made.groups)
        ]
        return Changes(ledger=followed(world, made, when), fleet=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class AgentReturned(AgentCase):
    """Make an agent fresh that was silent and has been heard of."""

    patient: ClassVar[bool] = True

    def change(self, world: World, when: When) -> FleetChanges:
        find(world.fleet, self.agent)
        return liveness.returned(world.fleet, when.stamp, self.agent, FleetChanges())


@dataclass(slots=True)
class GroupCase(AuditedUseCase[Group]):
    """A change of whether a group's network is suspect. Answer: the group."""

    name: str
    by: Actor
    answer: Group = field(init=False, repr=False, compare=False)

    def keys(self) -> Keys:
        return Keys(fleet=FleetKeys(changed={self.name}))

    def change(self, group: Group, world: World, when: When) -> FleetChanges:
        """Return the changes."""
        raise NotImplementedError

    def decide(self, world: World, when: When) -> Changes:
        group = world.fleet.groups.get(self.name)
        if group is None:
            raise Error(Code.GROUP_NOT_FOUND, f"There is no group '{self.name}'.")
        made = self.change(group, world, when)
        self.answer = made.groups.get(self.name) or group
        self.rows = []
        if made:
            after = made.groups[self.name]
            states = [
                {"suspect_since": one.suspect_since, "waits_until": one.waits_until}
                for one in (group, after)
                if one is not None
            ]
            action = "group.suspect_change"
            self.rows = [audit_entry(when.stamp, self.by, action, self.name, *states)]
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> Group:
        return self.answer  # a later case of the batch may delete the group


@dataclass(slots=True)
class GroupRelax(GroupCase):
    """End the suspicion of a group's network once few enough of its members are silent."""

    count: GroupCount

    def change(self, group: Group, world: World, when: When) -> FleetChanges:
        return liveness.relaxed(world.fleet, when.stamp, when.wall, self.name, self.count)


@dataclass(slots=True)
class GroupConfirm(GroupCase):
    """End the suspicion, because the silent members are lost."""

    def change(self, group: Group, world: World, when: When) -> FleetChanges:
        return liveness.confirmed(group, when.stamp)


@dataclass(slots=True)
class GroupWait(GroupCase):
    """Let a group be suspect until some time at least."""

    lasts: int

    def change(self, group: Group, world: World, when: When) -> FleetChanges:
        return liveness.waits(group, when.stamp, Instant(when.wall + self.lasts))
