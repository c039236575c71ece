"""Providers with their inventories, usages, traits and aggregates."""

from __future__ import annotations

from datetime import datetime

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryShown:
    """What a provider offers of one resource class, and how much of that is used.

    `offered` is what the machine can give now, as its agent reports it; null: no agent manages this
    class.
    """

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    offered: int | None
    used: int


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
