"""Tickets that did not fit into the ledger, and why: they are not tried while that stands.

Thousands may wait for capacity in a pool with free units. Each batch that grants there passes them
over; to read and to try all of them every time would slow everybody down.
"""

from typing import NamedTuple

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.service_time import When
from moorage.store.encoding import encode

OBSTACLES_MAX = 200_000
"""Tickets that are remembered; the oldest are forgotten, and tried again."""


CONSUMER = ""
"""In place of a resource class: it is a consumer that is in the way, by being there."""


class Obstacle(NamedTuple):
    """The inventory that refused a ticket, as it was then.

    It refuses again while it is the same and at least as much of it is used; one that was not there
    (`updated_at` is None), while it is not.
    """

    owner: ProviderId | ConsumerId
    resource_class: str
    updated_at: int | None
    used: int

    def stands(self, inventory: Inventory | None) -> bool:
        """Does it refuse for sure, as it is now?"""
        if inventory is None or self.updated_at is None:
            return inventory is None and self.updated_at is None
        return inventory.updated_at == self.updated_at and inventory.used >= self.used


def obstacle_of(provider: ProviderId, resource_class: str, inventory: Inventory | None) -> Obstacle:
    """Return what an inventory that has refused is to a ticket; None: there is none."""
    if inventory is None:
        return Obstacle(provider, resource_class, None, 0)
    return Obstacle(provider, resource_class, inventory.updated_at, inventory.used)


class Obstacles:
    """What this process knows of them. It may forget any: then a ticket is tried once more.

    Call `follow` with what changes, here and in other processes.
    """

    def __init__(self) -> None:
        self._known: dict[LeaseId, tuple[Obstacle, tuple[str, ...]]] = {}
        """With the pools that each ticket needs."""
        self._pools: dict[str, dict[Obstacle, dict[LeaseId, None]]] = {}
        """Many of a pool have the same: a host that is full refuses all who want it."""

    def __len__(self) -> int:
        return len(self._known)

    def note(self, lease: Lease, obstacle: Obstacle) -> None:
        """Remember what is in a ticket's way."""
        pools = tuple({need.pool for need in lease.needs})
        self.forget(lease.id)
        self._known[lease.id] = (obstacle, pools)
        for pool in pools:
            self._pools.setdefault(pool, {}).setdefault(obstacle, {})[lease.id] = None
        if len(self._known) > OBSTACLES_MAX:
            self.forget(next(iter(self._known)))

    def forget(self, lease: LeaseId) -> None:
        """Forget a ticket that does not wait any more."""
        known = self._known.pop(lease, None)
        if known is None:
            return
        obstacle, pools = known
        for pool in pools:
            groups = self._pools[pool]
            del groups[obstacle][lease]
            if not groups[obstacle]:
                del groups[obstacle]
            if not groups:
                del self._pools[pool]

    def follow(self, changes: Changes, _when: When) -> None:
        """Forget whoever does not wait any more."""
        for key, lease in changes.leases.items():
            if lease is None or lease.state != "waiting":
                self.forget(key)

    def stuck(self, facts: Facts, pool: str) -> str:
        """Return a JSON array of [owner, class, updated_at, used, [ticket, ...]] of a pool.

        Of the providers that a batch has loaded those are judged here, because it may have changed
        them; tickets that are stuck for sure have null for the owner.
        """
        rows: list[tuple[str | None, str, int | None, int, list[LeaseId]]] = []
        for obstacle, tickets in self._pools.get(pool, {}).items():
            provider = ProviderId(obstacle.owner)
            if obstacle.resource_class == CONSUMER or provider not in facts.providers:
                rows.append((*obstacle, [*tickets]))
                continue
            inventories = facts.inventories_of(provider)
            if obstacle.stands(inventories.get(obstacle.resource_class)):
                rows.append((None, *obstacle[1:], [*tickets]))
        return encode(rows)
