"""Actions of operators on providers, by the native API. Each action leaves an audit row."""

from dataclasses import dataclass, field
from typing import Any

from moorage.core.clock import Instant
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ids import ProviderId
from moorage.core.ledger import draining, managed, providers
from moorage.core.ledger.bulk import Trial
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.model import Provider
from moorage.core.restart import Restart
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.extra_loads import AgentsNeeded
from moorage.service.batch.machine_offer import machine_offer
from moorage.service.batch.use_case import LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.access.audit import AuditRow


@dataclass(slots=True)
class ProviderAction(LedgerUseCase[None]):
    """An operator's action on a provider; `reason` is for the audit trail."""

    uuid: ProviderId
    by: Actor
    reason: str
    rows: list[AuditRow] = field(default_factory=list, init=False)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return what the decision has left."""
        return self.rows

    def note(self, when: When, verb: str, before: Any, after: dict[str, Any]) -> None:
        """Leave an audit row; it replaces that of an earlier decision."""
        after = {**after, "reason": self.reason}
        self.rows = [audit_entry(when.stamp, self.by, f"provider.{verb}", self.uuid, before, after)]


@dataclass(slots=True)
class ProviderDrain(ProviderAction):
    """Drain a provider and all below it, or resume it; a repeat changes nothing."""

    drained: bool = True

    def keys(self) -> Keys:
        ledger = LedgerKeys(providers={self.uuid}, trees={self.uuid})
        return Keys(ledger, fleet=FleetKeys(roots={self.uuid}))

    def decide(self, world: World, when: When) -> Changes:
        self.rows = []
        if self.drained:
            made = draining.drain(world.ledger, self.uuid, self.reason)
        else:
            made = self._resumed(world, when)
        after = made.providers.get(self.uuid)
        if after is not None:
            before = world.ledger.providers[self.uuid]
            verb = "drain" if self.drained else "resume"
            self.note(when, verb, _withheld(before), _withheld(after))
        return self.decided(made, None)

    def _resumed(self, world: World, when: When) -> LedgerChanges:
        """Return the changes of a provider that is as its agent says, if it has one.

        Raises Restart.
        """
        agent = world.fleet.roots.get(self.uuid)
        if agent is not None and agent not in world.fleet.agents:
            raise Restart(AgentsNeeded({agent}))
        made = draining.resume(world.ledger, self.uuid)
        if agent is None or not made:
            return made
        trial = Trial(world.ledger, when.stamp)
        try:
            trial.step(made)
            trial.step(managed.follow_root(world.ledger, machine_offer(world.fleet.agents[agent])))
            return trial.changes
        finally:
            trial.take_back()


@dataclass(slots=True)
class ProviderRemove(ProviderAction):
    """Remove a provider; refused with children or allocations."""

    def keys(self) -> Keys:
        return Keys(LedgerKeys(providers={self.uuid}, tags={self.uuid}, parents={self.uuid}))

    def decide(self, world: World, when: When) -> Changes:
        self.rows = []
        made = providers.delete(world.ledger, self.uuid)
        self.note(when, "delete", {"name": world.ledger.providers[self.uuid].name}, {})
        return self.decided(made, None)


def _withheld(provider: Provider) -> dict[str, Any]:
    return {"withheld": None if provider.withheld is None else provider.withheld.reason}
