"""The final state to which a plan or its undoing leads: only what differs from the facts."""

from collections.abc import Mapping

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Allocations, Inventory, Tags

Key = tuple[ProviderId, str]
"""A place, as the facts and changes spell it: a provider and a resource class."""


class Standing(Struct, frozen=True):
    """The name and the parent of a provider."""

    name: str
    parent: ProviderId | None


class Owner(Struct, frozen=True):
    """To whom a consumer belongs, and since when it exists: so its lease knows it again."""

    project_id: str
    user_id: str
    consumer_type: str | None
    created_at: Instant


class Wanted(Struct):
    """The wanted result, and which exceptions from the constraints hold.

    Attributes:
        providers: those that are created, renamed or moved; None: deleted.
        figures: of inventories that change; None: removed. All of a deleted provider are in it.
        tags: of providers whose traits or aggregates change.
        allocations: complete new ones of consumers with a change; empty: the consumer goes.
        owners: of consumers that do not exist yet.
        drained: why an operator has drained providers themselves, as stored; None: nobody has.
            Only of those where that changes, and that exist in the end.
        excess: by how many units more than fits may be used at a place.
        residual: sources on which units stay that are not offered to anybody else.
        unused_only: sources of which only free units may move.
        unsettled: places of splits that could not be decided: their amounts mean nothing.
        restores: this leads back to what was before, so odd figures and amounts are no violations.
    """

    providers: dict[ProviderId, Standing | None] = {}
    figures: dict[Key, InventorySpec | None] = {}
    tags: dict[ProviderId, Tags] = {}
    allocations: dict[ConsumerId, Allocations] = {}
    owners: Mapping[ConsumerId, Owner] = {}
    drained: dict[ProviderId, str | None] = {}
    excess: dict[Key, float] = {}
    residual: set[Key] = set()
    unused_only: set[Key] = set()
    unsettled: set[Key] = set()
    restores: bool = False


def spec_of(inventory: Inventory) -> InventorySpec:
    """Return the figures of a stored inventory."""
    return InventorySpec(
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
    )


def holders_by_place(facts: Facts) -> dict[Key, list[ConsumerId]]:
    """Return who has units at each place of the providers whose holders are loaded; sorted.

    A provider may have thousands of holders and of classes: look here once for all of its places.
    """
    found: dict[Key, list[ConsumerId]] = {}
    for uuid, holders in facts.holders.items():
        for consumer in sorted(holders & facts.consumers.keys()):
            for name in facts.consumers[consumer].allocations.get(uuid, ()):
                found.setdefault((uuid, name), []).append(consumer)
    return found


def held_at(facts: Facts, consumer: ConsumerId, place: Key) -> int:
    """Return how many units a consumer has at a place."""
    known = facts.consumers.get(consumer)
    return 0 if known is None else known.allocations.get(place[0], {}).get(place[1], 0)
