"""A ledger that follows one agent, with consumers that claim its classes."""

from moorage.core.errors import Error
from moorage.core.fleet import offers
from moorage.core.fleet.model import Agent
from moorage.core.fleet.starts import ConsumerPlace
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import allocations, inventory, managed, providers
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.managed import ClassOffer, MachineOffer, PartOffer
from tests.core.ledger.build import NOW, facts

OTHERS, OTHERS_TOTAL = "VCPU", 8
"""What others say that a root has which they created."""


def machine_offer(agent: Agent, before: Agent | None = None) -> MachineOffer:
    """Return what the ledger takes over from an agent that has registered."""
    assert agent.root is not None
    sizes = {} if before is None else sizes_of(before)
    parts = {
        uuid: PartOffer(
            part.name,
            part.parent,
            {
                name: ClassOffer(
                    one.desired,
                    offers.offered(agent, part, one),
                    one.max_unit,
                    one.step_size,
                    part.present and one.present,
                    sizes.get((uuid, name), found) != found,
                )
                for name, one in part.classes.items()
                for found in [(one.max_unit, one.step_size)]
            },
        )
        for uuid, part in agent.parts.items()
    }
    return MachineOffer(agent.uuid, agent.root, None, parts, offers.why_withheld(agent))


def sizes_of(agent: Agent) -> dict[tuple[ProviderId, str], tuple[int | None, int]]:
    """Return the unit sizes that a machine demands."""
    return {
        (uuid, name): (one.max_unit, one.step_size)
        for uuid, part in agent.parts.items()
        for name, one in part.classes.items()
    }


class Ledger:
    """Providers, inventories and consumers of one machine."""

    def __init__(self) -> None:
        self.facts = facts()
        self.places: dict[tuple[ProviderId, ConsumerId], int] = {}
        self.followed: Agent | None = None

    def give(self, root: ProviderId) -> None:
        """Create a root that others speak for, with a class that the agent does not manage."""
        self.facts.apply(providers.create(self.facts, NOW, root, "host", None)[0])
        wanted = {OTHERS: InventorySpec(OTHERS_TOTAL)}
        self.facts.apply(inventory.replace_all(self.facts, NOW, root, 0, wanted, False)[0])

    def follow(self, agent: Agent) -> None:
        """Follow an agent; a root that it owns is created."""
        if agent.root is None:
            return
        if agent.root not in self.facts.providers:
            self.facts.apply(providers.create(self.facts, NOW, agent.root, "host", None)[0])
        self.facts.apply(managed.follow(self.facts, NOW, machine_offer(agent, self.followed)))
        self.followed = agent

    def generations(self) -> dict[ProviderId, int]:
        """Return the present generations of all providers."""
        return {uuid: one.generation for uuid, one in self.facts.providers.items()}

    def claim(self, consumer: ConsumerId, held: dict[ProviderId, dict[str, int]]) -> bool:
        """Replace what a consumer holds; return whether it fits."""
        request = ConsumerRequest(consumer, held, "project", "user", "INSTANCE")
        try:
            changes = allocations.replace_for(self.facts, NOW, [request])
        except Error as refusal:
            assert refusal.code in ("capacity_exceeded", "inventory_missing", "units_violated")
            return False
        self.facts.apply(changes)
        self.places.update(changes.places)
        self.places = {
            (uuid, one): since for (uuid, one), since in self.places.items() if self._has(uuid, one)
        }
        return True

    def listed_places(self) -> list[ConsumerPlace]:
        """Return the places of all consumers."""
        return [
            ConsumerPlace(consumer, uuid, since, self.facts.consumers[consumer].allocations[uuid])
            for (uuid, consumer), since in self.places.items()
        ]

    def used(self, uuid: ProviderId, name: str) -> int:
        """Return what consumers hold of a class, added up."""
        held = [one.allocations for one in self.facts.consumers.values()]
        return sum(amounts.get(uuid, {}).get(name, 0) for amounts in held)

    def _has(self, uuid: ProviderId, consumer: ConsumerId) -> bool:
        held = self.facts.consumers.get(consumer)
        return held is not None and uuid in held.allocations
