"""The values of the ledger, as they are after a change. All immutable.

Those that can be in no cycle are of no interest to the garbage collector: `gc=False`.
"""

from collections.abc import Mapping

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.limits import MAX_INT

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
"""A provider with this trait serves every tree that meets it in an aggregate."""


class Provider(Struct, frozen=True, gc=False):
    """Something that has inventory: a host, a device, a share of storage.

    `generation` rises with every change that others must not overwrite unseen. `root` is the
    provider at the top of its tree: itself, when it has no parent.
    """

    uuid: ProviderId
    name: str
    generation: int
    parent: ProviderId | None
    root: ProviderId
    created_at: Instant
    updated_at: Instant


class Inventory(Struct, frozen=True, gc=False):
    """What one provider offers of one resource class, and how much of it is used.

    `used` is the sum of all allocations on it; it is stored so that a claim reads one row.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0
    created_at: Instant = Instant(0)
    updated_at: Instant = Instant(0)


class Tags(Struct, frozen=True, gc=False):
    """The traits a provider has and the aggregates it belongs to."""

    traits: frozenset[str] = frozenset()
    aggregates: frozenset[AggregateId] = frozenset()
    updated_at: Instant = Instant(0)


NO_TAGS = Tags()


class Vocable(Struct, frozen=True, gc=False):
    """A custom resource class or a custom trait: a name somebody has made known."""

    name: str
    created_at: Instant
    updated_at: Instant


Allocations = dict[ProviderId, dict[str, int]]
"""Amounts by provider and resource class. Never empty inside, never zero."""


class Consumer(Struct, frozen=True):
    """Whoever holds allocations: an instance, a migration, a reservation.

    It exists only while it holds something. `consumer_type` is None when it was written before
    microversion 1.38 of the Placement API.
    """

    uuid: ConsumerId
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None
    allocations: Allocations
    created_at: Instant
    updated_at: Instant


class ProviderRecord(Struct, frozen=True, gc=False):
    """One provider with everything known of it. `version` rises whenever any of it changes."""

    provider: Provider
    inventories: Mapping[str, Inventory]
    tags: Tags
    version: int


Described = tuple[Provider, Mapping[str, Inventory], Tags]
"""A provider with everything that belongs to it."""
