"""The values of the ledger. All are immutable.

Values that cannot be part of a reference cycle have `gc=False`, to spare the garbage collector.
"""

from collections.abc import Mapping

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.ids import AgentId, AggregateId, ConsumerId, ProviderId
from moorage.core.limits import MAX_INT

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""A provider with this trait serves every tree with which it shares an aggregate."""


class Withheld(Struct, frozen=True, gc=False):
    """Why nothing of a provider is offered, and the provider from which it inherits that."""

    reason: str
    by: ProviderId


class Provider(Struct, frozen=True, gc=False):
    """Something that has inventory: a host, a device, a share of storage.

    `generation` rises with every change that other writers must see before they overwrite it.
    `root` is the provider at the top of its tree: itself if it has no parent. `agent` manages
    resource classes of it. A new or moved provider is `withheld` if its parent is.
    """

    uuid: ProviderId
    name: str
    generation: int
    parent: ProviderId | None
    root: ProviderId
    created_at: Instant
    updated_at: Instant
    agent: AgentId | None = None
    withheld: Withheld | None = None


class Inventory(Struct, frozen=True, gc=False, omit_defaults=True):
    """The amount of one resource class that one provider offers, and its usage.

    `used` is the sum of all allocations on it; it is stored so that a claim reads one row.
    `offered` is what the machine can give now, as its agent reports it; None: no agent manages this
    class. `withheld`: the provider is withheld, so nothing is offered. Rows omit what equals a
    default, so a default must never change.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    offered: int | None = None
    withheld: bool = False
    used: int = 0
    created_at: Instant = Instant(0)
    updated_at: Instant = Instant(0)


class Reported(Struct, frozen=True, gc=False):
    """The values that the reports of one group of reporters have set on a provider.

    `traits` are those that only its reports may remove; no trait that somebody else has set. A
    `ghost` is a provider that is gone by the last report, but still has allocations. A provider is
    `owned` once a report has said everything about it: if its node is gone, so is the provider.
    """

    group: str
    traits: frozenset[str] = frozenset()
    ghost: bool = False
    owned: bool = False

    def __bool__(self) -> bool:
        return bool(self.traits) or self.ghost or self.owned


class Tags(Struct, frozen=True, gc=False):
    """The traits a provider has, the aggregates it belongs to, and what reports have set.

    `reported` is sorted by group; a group that has set nothing is omitted.
    """

    traits: frozenset[str] = frozenset()
    aggregates: frozenset[AggregateId] = frozenset()
    updated_at: Instant = Instant(0)
    reported: tuple[Reported, ...] = ()

    def reported_by(self, group: str) -> Reported:
        """Return what the reports of a group have set."""
        for one in self.reported:
            if one.group == group:
                return one
        return Reported(group)


NO_TAGS = Tags()


class CustomName(Struct, frozen=True, gc=False):
    """The name of a custom resource class or a custom trait."""

    name: str
    created_at: Instant
    updated_at: Instant


Allocations = dict[ProviderId, dict[str, int]]
"""Amounts by provider and resource class. Inner dicts are not empty, amounts not zero."""


class Consumer(Struct, frozen=True):
    """The owner of allocations: an instance, a migration, a reservation.

    It exists only while it has allocations. `consumer_type` is None if it was written by a
    microversion of the Placement API before 1.38.
    """

    uuid: ConsumerId
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None
    allocations: Allocations
    created_at: Instant
    updated_at: Instant


class Import(Struct, frozen=True, gc=False):
    """The import of another ledger that is under way: from where, since when, by whom.

    While it stands, nothing else changes the ledger. `writer` is the name of the program that
    writes its rows now; None: it has chosen no name.
    """

    source: str
    since: Instant
    by: str
    writer: str | None = None


class ProviderRecord(Struct, frozen=True, gc=False):
    """One provider with all its data. `version` rises whenever any of it changes."""

    provider: Provider
    inventories: Mapping[str, Inventory]
    tags: Tags
    version: int


Described = tuple[Provider, Mapping[str, Inventory], Tags]
"""A provider with its inventories and tags."""
