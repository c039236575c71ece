"""Providers as they are: what each offers, has and uses."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryShown:
    """What a provider offers of one resource class, and how much of that is used."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderShown:
    """A provider with all that is known of it; inventories are by resource class."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    inventories: dict[str, InventoryShown]
    traits: list[str]
    aggregates: list[str]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPage:
    """A page of providers by UUID; `next` null: the last page.

    Whoever wants to go on with the changes keeps `as_of` of the first page and gives it to
    `/v1/watch` as `after`: changes that the pages already show come once more, and say the same.
    """

    providers: list[ProviderShown]
    next: str | None
    as_of: str
