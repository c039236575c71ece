"""How much of each resource class there is, is used, and is free."""

from __future__ import annotations

from dataclasses import field

from moorage.wire.dataclass import dataclass
from moorage.wire.enums import CapacityBy


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAsked:
    """Which sums: by class, or by class and aggregate or trait.

    `resource_class`: only this one. `ends` is how many of the fullest and of the emptiest providers
    each line names, at most 10. `limit` is at most 1000 lines; multiplied by `ends` at most 1000.
    """

    by: CapacityBy = "class"
    resource_class: str | None = None
    ends: int = 3
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFilled:
    """A provider, and how much of its capacity is used."""

    uuid: str
    name: str
    used: int
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderWithheld:
    """A provider of which nothing is offered, nor of those below it, and why."""

    uuid: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLine:
    """The sums of one resource class, over all its providers or those of an aggregate or trait.

    `group` is the aggregate or the trait; null: by class, or the providers that have none. A
    provider counts in each of its groups. `capacity` is how many units may be allocated in total:
    without the reserved ones, multiplied by the allocation ratio, and only of what is offered.
    `free` is how many more may be allocated, never more than `capacity`. Withheld providers are
    neither among the fullest nor among the emptiest. `ratio` is the allocation
    ratio of all of them; null: they differ.
    """

    resource_class: str
    group: str | None
    providers: int
    total: int
    reserved: int
    capacity: int
    used: int
    free: int
    fullest: list[ProviderFilled]
    emptiest: list[ProviderFilled]
    ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Sums over all providers, by class and group, as of one revision of the ledger.

    `as_of` is the cursor of that revision, for `/v1/watch`. `providers` is the number of all
    providers. `left_out` counts the lines that exceed the limit: the last ones. `withheld` counts
    the providers at which a part of the fleet begins that offers nothing, and `first_withheld`
    names at most 20 of them: those that an operator has drained first, then by name.
    """

    as_of: str
    providers: int
    lines: list[CapacityLine]
    left_out: int
    withheld: int = 0
    first_withheld: list[ProviderWithheld] = field(default_factory=list)
