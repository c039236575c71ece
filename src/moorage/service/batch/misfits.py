"""Remembers tickets that did not fit into the ledger, and why; they are skipped while that holds.

Thousands of tickets may wait for capacity in a pool with free units. Reading and trying all of them
in each batch that grants from the pool would slow down every request.
"""

from threading import Lock
from typing import NamedTuple

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.service_time import When
from moorage.store.encoding import encode

OBSTACLES_MAX = 200_000
"""Most tickets to remember; the oldest are dropped, and tried again."""


CONSUMER = ""
"""In place of a resource class: the obstacle is a consumer that exists already."""

UNMANAGED = -1
"""In place of what a machine can give: no agent manages the inventory."""


class Obstacle(NamedTuple):
    """The inventory that refused a ticket, as it was then.

    It refuses again while it is unchanged, as much of it is offered, and at least as much of it is
    used. A missing inventory (`updated_at` is None) refuses while it is missing.
    """

    owner: ProviderId | ConsumerId
    resource_class: str
    updated_at: int | None
    used: int
    given: int = UNMANAGED
    """The amount that the machine could give; it has no separate time."""

    def stands(self, inventory: Inventory | None) -> bool:
        """Return whether the inventory, as it is now, certainly refuses again."""
        if inventory is None or self.updated_at is None:
            return inventory is None and self.updated_at is None
        return (
            inventory.updated_at == self.updated_at
            and inventory.used >= self.used
            and _given(inventory) == self.given
        )


def obstacle_of(provider: ProviderId, resource_class: str, inventory: Inventory | None) -> Obstacle:
    """Return the obstacle that an inventory is; None: the provider has no such inventory."""
    if inventory is None:
        return Obstacle(provider, resource_class, None, 0)
    return Obstacle(
        provider, resource_class, inventory.updated_at, inventory.used, _given(inventory)
    )


def _given(inventory: Inventory) -> int:
    """Return what the machine can give now; the query `line_load` has the same rule."""
    if inventory.withheld:
        return 0
    return UNMANAGED if inventory.offered is None else inventory.offered


class Misfits:
    """The obstacles that this process knows. Any may be dropped: then its ticket is tried again.

    Call `follow` with every change, of this process and of its peers. A large batch calls `note`
    and `stuck` in a thread, while the event loop may follow its peers.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._known: dict[LeaseId, tuple[Obstacle, tuple[str, ...]]] = {}
        """Each ticket's obstacle and the pools that it needs."""
        self._pools: dict[str, dict[Obstacle, dict[LeaseId, None]]] = {}
        """By pool and obstacle: a full host refuses every ticket that asks for it."""

    def __len__(self) -> int:
        return len(self._known)

    def note(self, lease: Lease, obstacle: Obstacle) -> None:
        """Remember a ticket's obstacle."""
        pools = tuple({need.pool for need in lease.needs})
        with self._guard:
            self._forget(lease.id)
            self._known[lease.id] = (obstacle, pools)
            for pool in pools:
                self._pools.setdefault(pool, {}).setdefault(obstacle, {})[lease.id] = None
            if len(self._known) > OBSTACLES_MAX:
                self._forget(next(iter(self._known)))

    def follow(self, changes: Changes, _when: When) -> None:
        """Drop tickets that no longer wait."""
        with self._guard:
            for key, lease in changes.leases.items():
                if lease is None or lease.state != "waiting":
                    self._forget(key)

    def stuck(self, facts: Facts, pool: str) -> str:
        """Return a JSON array of [owner, class, updated_at, used, given, [ticket, ...]] of a pool.

        Misfits at providers that the batch has loaded are judged here, because the batch may have
        changed them; tickets that certainly do not fit have null for the owner.
        """
        rows: list[tuple[str | None, str, int | None, int, int, list[LeaseId]]] = []
        with self._guard:
            found = [(one, [*tickets]) for one, tickets in self._pools.get(pool, {}).items()]
        for obstacle, tickets in found:
            provider = ProviderId(obstacle.owner)
            if obstacle.resource_class == CONSUMER or provider not in facts.providers:
                rows.append((*obstacle, tickets))
                continue
            inventories = facts.inventories_of(provider)
            if obstacle.stands(inventories.get(obstacle.resource_class)):
                rows.append((None, *obstacle[1:], tickets))
        return encode(rows)

    def _forget(self, lease: LeaseId) -> None:
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
