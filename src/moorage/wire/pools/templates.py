"""Templates: what makes pools on demand. Durations are in seconds."""

from __future__ import annotations

from datetime import datetime

from moorage.wire.admission import PoolWanted
from moorage.wire.changes import PoolSpecValue
from moorage.wire.dataclass import dataclass
from moorage.wire.defaults import TEMPLATE_IDLE_SECONDS, TEMPLATE_POOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTemplateWanted:
    """The complete description of a template: pools whose names begin as its name does.

    A request for such a pool makes it, with these settings, if they let the caller ask. It goes
    once it was idle for `idle` seconds: no lease, no ticket, no resting unit, not paused. At most
    `pools_max` pools of the template exist at once. `pool.limit` is required.
    """

    pool: PoolWanted
    idle: float = TEMPLATE_IDLE_SECONDS
    pools_max: int = TEMPLATE_POOLS
    generation: int | None = None
    """Refuse if the template has another generation; 0: refuse if it exists; null: no check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTemplate:
    """A template as it is. `pools` is how many pools requests have made from it."""

    name: str
    pool: PoolSpecValue
    idle: float
    pools_max: int
    pools: int
    generation: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTemplateList:
    """All templates, by name."""

    templates: list[PoolTemplate]
