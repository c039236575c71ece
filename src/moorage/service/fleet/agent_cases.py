"""Use cases of agents themselves: created, enrolled, registered, reporting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from moorage.core.fleet import liveness, registering, reports, roots
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent, MachineReport, Policy
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import vocabulary
from moorage.core.ledger.managed import part_name
from moorage.core.ledger.providers import ancestors_of, subtree_of
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.access.audit import audit_entry
from moorage.service.batch.extra_loads import MachinesNeeded
from moorage.service.batch.world import Keys, World
from moorage.service.fleet.agent_case import AgentCase


def shown(agent: Agent | None) -> dict[str, Any] | None:
    """Return what the audit trail keeps of an agent."""
    if agent is None:
        return None
    return {
        "group": agent.group,
        "labels": dict(agent.labels),
        "policy": agent.policy.value,
        "state": agent.state.value,
        "reason": agent.policy_reason,
        "until": agent.policy_until,
        "root": agent.root,
        "given_root": agent.given_root,
    }


@dataclass(slots=True)
class AgentPut(AgentCase):
    """Create an agent, or change its group, labels or policy. Answer: the agent."""

    group: str
    labels: Mapping[str, str]
    policy: Policy | None = None
    root: ProviderId | None = None

    def keys(self) -> Keys:
        keys = AgentCase.keys(self)
        keys.update(Keys(fleet=FleetKeys(groups={self.group}, number=True)))
        if self.root is not None:
            keys.update(Keys(fleet=_root_keys(self.root)))
        return keys

    def change(self, world: World, when: When) -> FleetChanges:
        return registering.create(
            world.fleet,
            when.stamp,
            self.agent,
            self.group,
            self.labels,
            self.policy,
            self.by.who,
            self.root,
        )

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        action = "agent.create" if before is None else "agent.change"
        entry = (action, self.agent, shown(before), shown(after))
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


@dataclass(slots=True)
class AgentRoot(AgentCase):
    """Let an agent have an existing provider as root. Answer: the agent."""

    root: ProviderId
    audits_repeats = True

    def keys(self) -> Keys:
        keys = AgentCase.keys(self)
        keys.update(Keys(fleet=_root_keys(self.root)))
        return keys

    def change(self, world: World, when: When) -> FleetChanges:
        return roots.give(world.fleet, when.stamp, self.agent, self.root)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        entry = ("agent.root", self.agent, shown(before), shown(after))
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


def _root_keys(root: ProviderId) -> FleetKeys:
    """Name the agent of a root, and the agent that would have it without being asked."""
    return FleetKeys(agents={AgentId(root)}, roots={root})


@dataclass(slots=True)
class AgentEnroll(AgentCase):
    """Create an agent that no operator has accepted yet. Answer: the agent."""

    patient: ClassVar[bool] = True

    group: str
    labels: Mapping[str, str]

    def keys(self) -> Keys:
        keys = AgentCase.keys(self)
        keys.update(Keys(fleet=FleetKeys(groups={self.group}, number=True)))
        return keys

    def change(self, world: World, when: When) -> FleetChanges:
        return registering.enroll(
            world.fleet, when.stamp, self.agent, self.group, self.labels, self.by.who
        )

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        entry = ("agent.enroll", self.agent, None, shown(after))
        self.rows = [audit_entry(when.stamp, self.by, *entry)]


@dataclass(slots=True)
class AgentRegister(AgentCase):
    """Register a machine and its parts after a boot, or again. Answer: the agent."""

    patient: ClassVar[bool] = True

    spec: RegisterSpec
    creates = True

    def keys(self) -> Keys:
        """Also name what its parts may create, as far as it is known before the load."""
        before = None if self.known is None else self.known.root
        root = self.spec.root or before or ProviderId(self.agent)
        ledger = AgentCase.keys(self).ledger  # its former parts follow, too
        ledger.trees.add(root)
        ledger.providers.update(part.provider for part in self.spec.parts)
        for part in self.spec.parts:
            ledger.classes.update(vocabulary.customs(part.classes))
        if self.spec.root is None:
            name = self.spec.facts.hostname
            ledger.names.add(name)
            ledger.names.update(part_name(name, part.name) for part in self.spec.parts)
        fleet = FleetKeys(agents={self.agent, AgentId(root)}, roots={root} | ledger.providers)
        return Keys(ledger, fleet=fleet)

    def change(self, world: World, when: When) -> FleetChanges:
        before = world.fleet.agents.get(self.agent)
        known = {part.provider for part in self.spec.parts} | {*(before.parts if before else ())}
        providers = world.ledger.providers
        born = {uuid: providers[uuid].generation for uuid in known & providers.keys()}
        around = self._around(world, before)
        made = registering.register(world.fleet, when.stamp, self.agent, self.spec, born, around)
        return liveness.returned(world.fleet, when.stamp, self.agent, made)

    def _around(self, world: World, before: Agent | None) -> roots.Around:
        """Return what is above and below a given root that is new. Raises Restart."""
        top = None if self.spec.root is None else world.ledger.providers.get(self.spec.root)
        if top is None or before is None or (before.root is not None and not before.owns_root):
            return {}
        near = [*ancestors_of(world.ledger, top), *subtree_of(world.ledger, top)]
        around = {provider.uuid: provider.agent for provider in near}
        managers = {agent for agent in around.values() if agent is not None}
        asked = world.fleet.asked
        if not (around.keys() <= asked.roots and managers <= asked.agents):
            raise Restart(MachinesNeeded({*around}, managers))
        return around


@dataclass(slots=True)
class AgentReport(AgentCase):
    """Record the full state of a machine; an equal report changes nothing. Answer: the agent."""

    patient: ClassVar[bool] = True

    report: MachineReport
    creates = True

    def change(self, world: World, when: When) -> FleetChanges:
        made = reports.report(world.fleet, when.stamp, self.agent, self.report)
        return liveness.returned(world.fleet, when.stamp, self.agent, made)
