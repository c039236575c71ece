"""Use cases of operators: what a machine should have, and whether it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from moorage.core.clock import Instant
from moorage.core.fleet import desired, groups, policy
from moorage.core.fleet.agents import find
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent, Goal, Group, Silence
from moorage.core.fleet.policy import Action
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.service_time import When
from moorage.core.texts import check_reason
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet.agent_audit import audited
from moorage.service.fleet.agent_cases import AgentCase, followed, ledger_keys


@dataclass(slots=True)
class AgentPolicy(AgentCase):
    """Drain, resume, expunge or decommission a machine; a repeat changes nothing."""

    action: Action
    reason: str
    until: Instant | None = None
    force: bool = False
    audits_repeats = True

    def change(self, world: World, when: When) -> FleetChanges:
        asked = (world.fleet, when.stamp, self.agent, self.reason, self.by.who)
        if self.action is Action.DRAIN:
            return policy.drain(*asked, self.until, when.wall)
        if self.action is Action.RESUME:
            return policy.resume(*asked)
        if self.action is Action.EXPUNGE:
            return policy.expunge(*asked)
        used = is_used(world.ledger, world.fleet.agents.get(self.agent))
        return policy.decommission(*asked, used=used, force=self.force)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        entry = (f"agent.{self.action.value}", self.agent, audited(before), audited(after))
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


def is_part_of(facts: LedgerFacts, uuid: ProviderId, agent: Agent) -> bool:
    """Return whether a provider is still that of the agent: clients may create another one."""
    provider = facts.providers.get(uuid)
    return provider is not None and provider.agent == agent.uuid


def is_used(facts: LedgerFacts, agent: Agent | None) -> bool:
    """Return whether anything is allocated in the tree of an agent's machine.

    Its parts count wherever clients have moved them.
    """
    if agent is None or agent.root is None:
        return False
    below = {agent.root}
    below |= {uuid for uuid in agent.parts if is_part_of(facts, uuid, agent)}
    found = [*below]
    for uuid in found:
        children = facts.children.get(uuid, set()) - below
        below |= children
        found.extend(children)
    return any(one.used for uuid in found for one in facts.inventories_of(uuid).values())


@dataclass(slots=True)
class AgentDesired(AgentCase):
    """Set how much a machine should have of a class."""

    spec: DesiredSpec
    reason: str = ""
    audits_repeats = True

    def change(self, world: World, when: When) -> FleetChanges:
        check_reason(self.reason)
        return desired.set_goal(world.fleet, when.stamp, self.agent, self.spec)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        amounts = None if before is None else desired.amounts(before)
        done = {"desired": desired.amounts(after), "reason": self.reason}
        entry = ("agent.desired", self.agent, {"desired": amounts}, done)
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


@dataclass(slots=True)
class DrainOver(AgentCase):
    """Use a machine again whose drain has reached its end."""

    def change(self, world: World, when: When) -> FleetChanges:
        return policy.drain_over(find(world.fleet, self.agent), when.wall)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        entry = ("agent.resume", self.agent, audited(before), audited(after))
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


@dataclass(slots=True)
class GroupPut(AuditedUseCase[Group]):
    """Create a group, or replace its defaults. Its members follow later. Answer: the group."""

    name: str
    desired: Mapping[str, Goal]
    by: Actor
    silence: Silence | None = None
    """What is closed while a member is silent; None: unchanged."""
    answer: Group = field(init=False, repr=False, compare=False)

    def keys(self) -> Keys:
        return Keys(fleet=FleetKeys(groups={self.name}, number=True))

    def decide(self, world: World, when: When) -> Changes:
        before = world.fleet.groups.get(self.name)
        made = groups.put(world.fleet, when.stamp, self.name, self.desired, silence=self.silence)
        self.rows = []
        if made:
            after = made.groups[self.name]
            entry = ("group.put", self.name, before and _shown(before), after and _shown(after))
            self.rows = [audit_entry(when.stamp, self.by, *entry)]
        answer = made.groups.get(self.name) or before
        assert answer is not None
        self.answer = answer
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> Group:
        return self.answer  # a later case of the batch may delete the group


def _shown(group: Group) -> Any:
    """Return the settings of a group for an audit row."""
    if group.silence is Silence.OWN:
        return group.desired
    return {"desired": group.desired, "silence": group.silence}


@dataclass(slots=True)
class GroupFollow(AuditedUseCase[None]):
    """Make some members follow the defaults of their group."""

    is_followed: ClassVar[bool] = True
    members: Sequence[Agent]
    """The members as the caller knows them."""

    def keys(self) -> Keys:
        agents = {agent.uuid for agent in self.members}
        return Keys(ledger_keys(self.members), fleet=FleetKeys(agents=agents))

    def decide(self, world: World, when: When) -> Changes:
        made = FleetChanges()
        known = {agent.uuid for agent in self.members}
        for uuid in sorted(known & world.fleet.agents.keys()):
            made.update(groups.follow(world.fleet, when.stamp, uuid))
        return Changes(ledger=followed(world, made, when), fleet=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class GroupDelete(AuditedUseCase[None]):
    """Remove a group without active agents."""

    name: str
    by: Actor

    def keys(self) -> Keys:
        return Keys(fleet=FleetKeys(members={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        members = [
            agent
            for agent in world.fleet.agents.values()
            if agent.group == self.name and agent.state == "active"
        ]
        made = groups.delete(world.fleet, self.name, len(members))
        self.rows = [audit_entry(when.stamp, self.by, "group.delete", self.name)]
        return Changes(fleet=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""
