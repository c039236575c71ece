"""The use case behind every change of an agent: the ledger follows it in the same batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent
from moorage.core.fleet.policy import is_accepted
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import managed
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Provider
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.access.audit import Actor
from moorage.service.batch.extra_loads import MachinesNeeded, TreesNeeded
from moorage.service.batch.machine_offer import machine_offer
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World

NOTHING_LOADED: Mapping[ProviderId, Provider] = MappingProxyType({})


@dataclass(slots=True)
class AgentCase(AuditedUseCase[Agent]):
    """A change of one agent. Answer: the agent afterwards."""

    agent: AgentId
    by: Actor
    known: Agent | None = field(default=None, kw_only=True)
    """The agent as the caller knows it: saves a second load."""

    creates: ClassVar[bool] = False
    """Whether providers are created that are missing; only machines declare them."""

    audits_repeats: ClassVar[bool] = False
    """Whether a request that changes nothing leaves audit rows, too."""

    def keys(self) -> Keys:
        """Name the agent with its group, and the tree of its machine."""
        ledger = LedgerKeys(trees={ProviderId(self.agent)})
        if self.known is not None:
            ledger = ledger_keys([self.known], create=self.creates)
        # What is created may be the root of another machine.
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
    if is_accepted(before) or not is_accepted(after):
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
            may_create = create and is_accepted(agent)
            trial.step(managed.follow(facts, trial.now, machine, create=may_create))
        return trial.changes or None
    finally:
        trial.take_back()
