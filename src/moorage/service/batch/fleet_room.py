"""The fleet's part of a batch: load, apply decisions, save; agents follow what clients write."""

from collections.abc import Mapping

from moorage.core.fleet import desired
from moorage.core.fleet.facts import Changes, Facts, Keys
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger import managed
from moorage.core.ledger.facts import Facts as LedgerFacts
from moorage.core.ledger.model import Provider
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.batch.extra_loads import AgentsNeeded
from moorage.service.batch.ledger_room import LedgerRoom
from moorage.service.batch.machine_offer import class_offer, machine_offer
from moorage.service.batch.world import Changes as AllChanges
from moorage.service.batch.world import World
from moorage.store.api import Plan
from moorage.store.fleet import load, save


class FleetRoom:
    """The agents and groups of one batch."""

    def __init__(self, world: World, keys: Keys, ledger: LedgerRoom) -> None:
        self._world = world
        self._keys = keys
        self._ledger = ledger
        self.changes = Changes()
        self.when: When
        """The time of the batch, set by `begin`."""

    @property
    def facts(self) -> Facts:
        """The loaded rows, as changed so far."""
        return self._world.fleet

    def load(self) -> Plan[None]:
        """Lock and load what the keys name; for reporters, service time first."""
        keys = self._keys
        if keys.reporters and self._world.timeline is None:
            self._world.timeline = yield from load.timeline_lock()
        self._world.fleet = yield from load.facts_load(keys)
        if keys.reporters:
            yield from load.reporters_load(self._world.fleet, keys)

    def begin(self, when: When) -> None:
        """Set the time of the batch."""
        self.when = when

    def decided(self, changes: AllChanges) -> None:
        """Apply a decision; let agents follow what it has written to their classes.

        Raises Restart.
        """
        if changes.fleet is not None:
            self._apply(changes.fleet)
        if changes.ledger is not None:
            if self.facts.roots:  # only what creates providers asks for roots, and claims do not
                self._created(changes.ledger.providers)
            if changes.ledger.overwritten:
                self._overwritten(changes.ledger.overwritten)

    def part(self) -> save.FleetPart:
        """Return what is to be saved."""
        return save.FleetPart(self.changes)

    def _apply(self, made: Changes) -> None:
        self.facts.apply(made)
        self.changes.update(made)

    def _created(self, providers: Mapping[ProviderId, Provider | None]) -> None:
        """Close machines whose root somebody has deleted and now creates again."""
        ledger = self._ledger.facts
        roots = {
            uuid: self.facts.roots[uuid]
            for uuid, provider in providers.items()
            if provider is not None and provider.created_at >= self.when.stamp
            if uuid in self.facts.roots
        }
        self._check_loaded(set(roots.values()))
        for agent in roots.values():
            machine = machine_offer(self.facts.agents[agent])
            self._ledger.apply(managed.follow_root(ledger, machine))

    def _check_loaded(self, agents: set[AgentId]) -> None:
        """Raise Restart unless these agents are loaded."""
        missing = agents - self.facts.agents.keys()
        if missing:
            raise Restart(AgentsNeeded(missing))

    def _overwritten(self, totals: Mapping[tuple[ProviderId, str], int]) -> None:
        """Make new totals the desired amounts of the agents, and offer what is there of them."""
        ledger = self._ledger.facts
        by_agent = _by_agent(ledger, totals)
        self._check_loaded(set(by_agent))
        for agent, pairs in by_agent.items():
            self._apply(desired.overwritten(self.facts, self.when.stamp, agent, pairs))
            after = self.facts.agents[agent]
            for uuid, name in pairs:
                offer = class_offer(after, uuid, name)
                self._ledger.apply(
                    managed.follow_class(ledger, self._ledger.stamp, uuid, name, offer)
                )


def check_unmanaged(ledger: LedgerFacts, totals: Mapping[tuple[ProviderId, str], int]) -> None:
    """Raise Restart if agents must follow new totals of their classes."""
    if by_agent := _by_agent(ledger, totals):
        raise Restart(AgentsNeeded(set(by_agent)))


def _by_agent(
    ledger: LedgerFacts, totals: Mapping[tuple[ProviderId, str], int]
) -> dict[AgentId, dict[tuple[ProviderId, str], int]]:
    """Return the totals of providers that agents manage, by agent."""
    found: dict[AgentId, dict[tuple[ProviderId, str], int]] = {}
    for (uuid, name), total in totals.items():
        provider = ledger.providers.get(uuid)
        if provider is not None and provider.agent is not None:
            found.setdefault(provider.agent, {})[uuid, name] = total
    return found
