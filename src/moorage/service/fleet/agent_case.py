"""The use case behind every change of an agent: the ledger follows it in the same batch."""

from dataclasses import dataclass, field
from typing import ClassVar

from moorage.core.fleet.facts import Changes as FleetChanges
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.fleet.model import Agent
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import managed
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts as LedgerFacts
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

    agent: AgentId
    by: Actor
    root: ProviderId | None = field(default=None, kw_only=True)
    """The root of its machine, if the caller knows it: saves a second load."""

    creates: ClassVar[bool] = False
    """Whether providers are created that are missing; only machines declare them."""

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
        ledger = followed(world.ledger, made, when, create=self.creates)
        return Changes(ledger=ledger, fleet=made)

    def note(self, before: Agent | None, after: Agent, when: When) -> None:
        """Leave audit rows of a change; by default none: machines are not audited."""

    def conclude(self, world: World, when: When) -> Agent:
        """Return the agent."""
        return world.fleet.agents[self.agent]


def followed(
    facts: LedgerFacts, made: FleetChanges, when: When, *, create: bool = False
) -> LedgerChanges | None:
    """Return the changes of the ledger that follow from changed agents; None: none.

    Providers that are missing are created with `create`, otherwise skipped: what a client has
    deleted must not keep operators, or the silence of others, from closing a machine.

    Raises `Error`: as `managed.follow`. Raises Restart.
    """
    trial = Trial(facts, when.stamp)  # each sees what follows from those before it
    try:
        for agent in made.agents.values():
            if agent.root is None:
                continue
            machine = machine_offer(agent)
            keys = managed.keys_for(facts, machine, create=create)
            if not facts.loaded.includes(keys):
                raise Restart(TreesNeeded(keys))
            trial.step(managed.follow(facts, trial.now, machine, create=create))
        return trial.changes or None
    finally:
        trial.take_back()
