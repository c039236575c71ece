"""The use case behind every change of an agent: the ledger follows it in the same batch."""

from dataclasses import dataclass, field
from typing import ClassVar

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import managed
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.access.audit import Actor
from moorage.service.batch.extra_loads import TreesNeeded
from moorage.service.batch.machine_offer import machine_offer
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World


@dataclass(slots=True)
class AgentCase(AuditedUseCase[Agent]):
    """A change of one agent. Answer: the agent afterwards."""

    creates: ClassVar[bool] = False
    """Whether providers of the machine that do not exist are created: if the machine speaks."""

    agent: AgentId
    by: Actor
    root: ProviderId | None = field(default=None, kw_only=True)
    """The root of its machine, if the caller knows it: saves a second load."""

    def keys(self) -> Keys:
        """Name the agent with its group, and the tree of its machine."""
        return Keys(
            LedgerKeys(trees={self.root or ProviderId(self.agent)}),
            fleet=FleetKeys(agents={self.agent}),
        )

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
        return Changes(ledger=followed(world, made, when, creates=self.creates), fleet=made)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        """Leave audit rows of a change; by default none: machines are not audited."""

    def conclude(self, world: World, when: When) -> Agent:
        """Return the agent."""
        return world.fleet.agents[self.agent]


def followed(
    world: World, made: FleetChanges, when: When, *, creates: bool = False
) -> LedgerChanges | None:
    """Return the changes of the ledger that follow from changed agents; None: none.

    `world` is as before the decision. `creates`: create missing providers.

    Raises `Error`: as `managed.follow`. Raises Restart.
    """
    facts, changes = world.ledger, LedgerChanges()
    for agent in made.agents.values():
        if agent.root is None:
            continue
        machine = machine_offer(agent, world.fleet.agents.get(agent.uuid))
        keys = managed.keys_for(facts, machine)
        if not facts.loaded.includes(keys):
            raise Restart(TreesNeeded(keys))
        at = Instant(when.stamp + changes.instants)
        changes.update(managed.follow(facts, at, machine, creates=creates))
    return changes or None
