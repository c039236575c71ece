"""Use cases of agents themselves: created, enrolled, registered, reporting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from moorage.core.fleet import liveness, registering, reports, roots
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent, MachineReport, Policy
from moorage.core.fleet.registering import RegisterSpec
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import managed, vocabulary
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.managed import part_name
from moorage.core.ledger.model import Provider
from moorage.core.ledger.providers import ancestors_of, subtree_of
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.extra_loads import MachinesNeeded, TreesNeeded
from moorage.service.batch.machine_offer import machine_offer
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fleet.agent_audit import audited

NOTHING_LOADED: Mapping[ProviderId, Provider] = MappingProxyType({})


@dataclass(slots=True)
class AgentCase(AuditedUseCase[Agent]):
    """A change of one agent. Answer: the agent afterwards."""

    agent: AgentId
    by: Actor
    known: Agent | None = field(default=None, kw_only=True)
    """The agent as the caller knows it: saves a second load."""

    is_followed: ClassVar[bool] = True
    creates: ClassVar[bool] = False
    """Whether providers are created that are missing; only machines declare them."""

    audits_repeats: ClassVar[bool] = False
    """Whether a request that changes nothing leaves audit rows, too."""

    def keys(self) -> Keys:
        """Name the agent with its group, and the tree of its machine."""
        ledger = LedgerKeys(trees={ProviderId(self.agent)})
        if self.known is not None:
            ledger = ledger_keys([self.known], create=self.creates)
        # A created provider may be the root of another machine.
        roots = ledger.providers if self.creates else set()
        return Keys(ledger, fleet=FleetKeys(agents={self.agent}, roots={*roots}))

    def change(self, world: World, when: When) -> FleetChanges:
        """Return the changes of the fleet, or raise `Error`."""
        raise NotImplementedError

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes of the fleet, and those of the ledger that follow. Raises Restart."""
        self.rows = []
        before = world.fleet.agents.get(self.agent)
        made = self.change(world, when)
        after = made.agents.get(self.agent)
        if after is not None:
            self.note(before, after, when)
        elif self.audits_repeats and before is not None:
            self.note(before, before, when)
        create = self.creates or _accepted_now(world, before, after)
        followers = made
        if self.creates and before is not None and after is None:
            followers = FleetChanges(agents={self.agent: before})  # a provider may be missing
        ledger = followed(world, followers, when, create=create)
        return Changes(ledger=ledger, fleet=made)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        """Leave audit rows of a change; by default none: machines are not audited."""

    def conclude(self, world: World, when: When) -> Agent:
        """Return the agent."""
        return world.fleet.agents[self.agent]


def _accepted_now(world: World, before: Agent | None, after: Agent | None) -> bool:
    """Return whether an operator has just accepted an agent, so that its providers are created.

    If its root is a provider of others, nothing is: it must register with that one. Raises Restart.
    """
    if before is None or after is None or after.root is None:
        return False
    if before.accepted or not after.accepted:
        return False
    made = {after.root, *after.parts}
    if not made <= world.fleet.asked.roots:
        raise Restart(MachinesNeeded(made, set()))  # what is created may be the root of another
    root = world.ledger.providers.get(after.root)
    return root is None or not after.owns_root or root.agent == after.uuid


def ledger_keys(
    agents: Iterable[Agent],
    providers: Mapping[ProviderId, Provider] = NOTHING_LOADED,
    *,
    create: bool = False,
) -> LedgerKeys:
    """Return what `followed` needs of the ledger.

    Args:
        agents: those that change; agents that have never registered are in no tree.
        providers: those that are loaded already.
        create: as in `followed`.
    """
    keys = LedgerKeys()
    for agent in agents:
        if agent.root is not None:
            keys.update(managed.keys_for(providers, machine_offer(agent), create=create))
    return keys


def followed(
    world: World, made: FleetChanges, when: When, *, create: bool = False
) -> LedgerChanges | None:
    """Return the changes of the ledger that follow from changed agents; None: none.

    Providers that are missing are created with `create`, otherwise skipped: what a client has
    deleted must not keep operators, or the silence of others, from closing a machine. Those of an
    agent that no operator has accepted are skipped, too: it would choose names that others need.
    `world` is as before the decision.

    Raises `Error`: as `managed.follow`. Raises Restart.
    """
    facts, before = world.ledger, world.fleet.agents
    agents = [agent for agent in made.agents.values() if agent.root is not None]
    keys = ledger_keys(agents, facts.providers, create=create)
    if not facts.loaded.includes(keys):
        raise Restart(TreesNeeded(keys))
    trial = Trial(facts, when.stamp)  # each sees what follows from those before it
    try:
        for agent in agents:
            machine = machine_offer(agent, before.get(agent.uuid))
            may_create = create and agent.accepted
            trial.step(managed.follow(facts, trial.now, machine, create=may_create))
        return trial.changes or None
    finally:
        trial.take_back()


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
        entry = (action, self.agent, audited(before), audited(after))
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
        entry = ("agent.root", self.agent, audited(before), audited(after))
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
        entry = ("agent.enroll", self.agent, None, audited(after))
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
