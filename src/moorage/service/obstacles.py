"""Tickets that did not fit into the ledger, and why: they are not tried while that stands.

Thousands may wait for capacity in a pool with free units. Each batch that grants there passes them
over; to read and to try all of them every time would slow everybody down.
"""

from typing import NamedTuple

from moorage.core.ids import LeaseId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.store.rows import encode

OBSTACLES_MAX = 50_000
"""Tickets that are remembered; the oldest are forgotten, and tried again."""


class Obstacle(NamedTuple):
    """The inventory that refused a ticket, as it was then.

    It refuses again while it is the same and at least as much of it is used.
    """

    provider: ProviderId
    resource_class: str
    updated_at: int
    used: int

    def stands(self, inventory: Inventory | None) -> bool:
        """Does it refuse for sure, as it is now?"""
        return (
            inventory is not None
            and inventory.updated_at == self.updated_at
            and inventory.used >= self.used
        )


class Obstacles:
    """What this process knows of them. It may forget any: then a ticket is tried once more."""

    def __init__(self) -> None:
        self._known: dict[LeaseId, Obstacle] = {}

    def note(
        self, lease: LeaseId, provider: ProviderId, resource_class: str, inventory: Inventory
    ) -> None:
        """Remember which inventory refused a ticket."""
        self._known.pop(lease, None)
        self._known[lease] = Obstacle(
            provider, resource_class, inventory.updated_at, inventory.used
        )
        if len(self._known) > OBSTACLES_MAX:
            del self._known[next(iter(self._known))]

    def forget(self, lease: LeaseId) -> None:
        """Forget a ticket that does not wait any more."""
        self._known.pop(lease, None)

    def stuck(self, facts: Facts) -> str:
        """Return a JSON array of [ticket, provider, class, updated_at, used].

        Of the providers that a batch has loaded those are judged here, because it may have changed
        them; a ticket that is stuck for sure has null for its provider.
        """
        if not self._known:
            return "[]"
        rows: list[tuple[str, str | None, str, int, int]] = []
        for lease, obstacle in self._known.items():
            if obstacle.provider not in facts.providers:
                rows.append((lease, *obstacle))
                continue
            inventories = facts.inventories_of(obstacle.provider)
            if obstacle.stands(inventories.get(obstacle.resource_class)):
                rows.append((lease, None, *obstacle[1:]))
        return encode(rows)
