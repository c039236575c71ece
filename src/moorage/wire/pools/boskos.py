"""The resources of Boskos, as its custom resources have them, for moving them in and out."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BoskosResource:
    """A resource of one type: a slot of the pool with that name.

    `owner` empty: it is free. `expires_at` is when a resource of a dynamic type is to be deleted.
    """

    name: str
    state: str
    owner: str = ""
    user_data: dict[str, str] = field(default_factory=dict)
    updated_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoskosResourcesWanted:
    """All resources of one type, as they are in Boskos."""

    resources: list[BoskosResource]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoskosOutcome:
    """The result for one resource: `imported`, `unchanged`, `removed`, `kept` or `refused`.

    `removed`: an unused slot of a growing pool, made before the import, that Boskos does not have.
    `kept`: another slot that Boskos does not have. `reason` says why it is kept or refused.
    """

    name: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoskosOutcomes:
    """The results of an import, by name."""

    outcomes: list[BoskosOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoskosResourcePage:
    """Resources of a type by name, and the cursor of the next page; null: this is the last."""

    resources: list[BoskosResource]
    next: str | None
