"""Every committed change, in order, for whoever follows the ledger.

The values here are after-images in the form in which they are kept: their times are microseconds
since 1970, and a generation counts within its provider or consumer.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderValue:
    """A provider, by its UUID. `root` is the provider at the top of its tree."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryValue:
    """What a provider offers of a resource class and what is used, by PROVIDER/CLASS."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsValue:
    """The traits and aggregates of a provider, by its UUID."""

    traits: list[str]
    aggregates: list[str]
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerValue:
    """A consumer and all it holds, amounts by provider and resource class, by its UUID."""

    uuid: str
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None
    allocations: dict[str, dict[str, int]]
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NameValue:
    """A custom resource class or trait that exists, by its name."""

    name: str
    created_at: int
    updated_at: int


VALUES: dict[str, type[Any]] = {
    "renamed_class": str,
    "resource_class": NameValue,
    "trait": NameValue,
    "provider": ProviderValue,
    "inventory": InventoryValue,
    "tags": TagsValue,
    "consumer": ConsumerValue,
}
"""The kinds of changes in the order within a revision, and what their values are.

`renamed_class` has the new name for its value: every inventory and allocation of the class named by
its key is of the new one from then on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The n-th change of a revision: what `key` names is now `value`; null: it is gone."""

    revision: int
    n: int
    kind: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes in order, and the cursor to go on from: none is missing between two answers."""

    changes: list[Change]
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesAsked:
    """What to follow.

    `after` is a cursor, EPOCH.REVISION or EPOCH.REVISION.N; without it only what happens from now
    on. `kinds` are separated by commas, all by default. `wait` is in seconds, at most 60; `limit`
    changes are looked at, at most 1000.
    """

    after: str | None = None
    kinds: str | None = None
    wait: float = 30.0
    limit: int = 500
