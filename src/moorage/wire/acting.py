"""Actions that are shown before they are carried out."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.admission import Pacing
from moorage.wire.dataclass import dataclass

ActionName = Literal[
    "pool.tune",
    "pool.pause",
    "pool.resume",
    "lease.move",
    "lease.force",
    "lease.revoke",
    "lease.hold",
    "lease.keep",
    "agent.drain",
    "agent.resume",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionWanted:
    """An action on a pool, a lease or ticket, or an agent.

    `lease.hold` and `lease.keep` are for the owner of the lease, too, the others for operators.
    Only some members belong to each action: `limit` (null: it stays), `pacing` (null: none) and
    `generation` (null: any) to `pool.tune`; `until` or `lasts` to `pool.pause`,
    `agent.drain` and `lease.keep`; `priority` (null: first in all lines) to `lease.move`; `hold`
    (seconds from now; null: no end) to `lease.hold`; `reason` to all that have one. `digest` is
    that of the effect that the caller has seen; it is required to act, and ignored by a preview.
    """

    action: ActionName
    target: str
    limit: int | None = None
    pacing: Pacing | None = None
    generation: int | None = None
    reason: str = ""
    until: datetime | None = None
    lasts: float | None = None
    priority: int | None = None
    hold: float | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEffect:
    """What an action does to the present state. `lines` say it in sentences.

    `leases_end`, `tickets_end` and `tickets_start` count what ends and starts at once; `ends` and
    `starts` are the ids of the first 100 of them. `done`: it has changed something. `audit` has
    the ids of its audit entries, if it leaves any. `undo` is the action that takes it back; null:
    there is none.
    """

    action: ActionName
    target: str
    lines: list[str]
    digest: str
    leases_end: int = 0
    tickets_end: int = 0
    tickets_start: int = 0
    ends: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    done: bool = False
    audit: list[str] = field(default_factory=list)
    undo: ActionWanted | None = None
