"""Providers with their inventories, usages, traits and aggregates."""

from __future__ import annotations

from datetime import datetime

from moorage.wire.dataclass import dataclass
from moorage.wire.pages import PageAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryShown:
    """What a provider offers of one resource class, and how much of that is used.

    `offered` is what the machine can give now, as its agent reports it; null: no agent manages this
    class. `capacity` is how many units may be allocated in total: without the reserved ones,
    multiplied by the allocation ratio, and only of what is offered. `free` is how many more may be
    allocated.
    """

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    offered: int | None
    used: int
    capacity: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderShown:
    """A provider with everything known about it; inventories are by resource class.

    `reported` are the traits that reports have set, by group of reporters. `agent` manages classes
    of it. `withheld` is the reason why nothing of it is offered; null: it is not withheld.
    """

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    inventories: dict[str, InventoryShown]
    traits: list[str]
    aggregates: list[str]
    reported: dict[str, list[str]]
    agent: str | None
    withheld: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPage:
    """A page of providers by UUID; `next` null: the last page.

    To follow later changes, pass `as_of` of the first page to `/v1/watch` as `after`. Changes that
    the pages already include are then repeated, with the same values.
    """

    providers: list[ProviderShown]
    next: str | None
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidersAsked(PageAsked):
    """Which providers: those with the exact `name`, or whose UUID begins with `id_prefix`.

    `tree` is the UUID of a provider: only those of its tree, wherever it stands there.
    """

    name: str | None = None
    id_prefix: str | None = None
    tree: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """Why a provider is drained, resumed or deleted, for the audit trail and for others."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAsked:
    """Why a provider is deleted, for the audit trail."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """What a consumer holds of a provider; `name` null: the provider was deleted meanwhile."""

    provider: str
    name: str | None
    resources: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerShown:
    """A consumer with all that it holds, by the name of the provider.

    `type` null: it was created before consumers had types. `created_at` is when it got its first
    allocation.
    """

    uuid: str
    generation: int
    project: str
    user: str
    type: str | None
    allocations: list[Allocated]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumersAsked(PageAsked):
    """Which consumers: those that all the given values fit.

    `type` "unknown" means those without one. `provider` is the UUID of one that they hold something
    of, `tree` that of any provider in the tree of which they hold something. `older` is the least
    age in seconds. `id_prefix` is the beginning of the UUID.
    """

    project: str | None = None
    user: str | None = None
    type: str | None = None
    provider: str | None = None
    tree: str | None = None
    older: float | None = None
    id_prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPage:
    """A page of consumers by UUID; `next` null: the last page.

    A page may have fewer consumers than asked for, or none, although others follow: a page
    ends when a number of them was looked at. `as_of` is the cursor of the revision at which they
    were read, for `/v1/watch`. `holders` is how many consumers hold something of `provider` or
    `tree`, whatever else is asked for; null without these, and on later pages.
    """

    consumers: list[ConsumerShown]
    next: str | None
    as_of: str
    holders: int | None = None
