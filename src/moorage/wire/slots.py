"""Named slots of a pool: what they are, and how an operator makes, labels and drains them."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDrain:
    """Why a slot is not granted any more. `goes`: it is removed once it is free."""

    goes: bool
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRelease:
    """A release by name through the lease proxy that counts as that of an earlier holder.

    It may be that of any of `leases`; empty: it is not known whose. `until` is when the release is
    not expected any more; null: one has come, and may have been that of the last one, which has
    the slot. If the holder of an earlier one is gone, revoke that lease with `holder_is_gone`.
    """

    pool: str
    slot: str
    leases: list[str]
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A named unit of a pool.

    `state` is one word for people: `held`, `draining` (held, but never granted again), `drained`,
    `resting` (in its cooldown), or else `raw_state`: `free`, or what a client of Boskos has set,
    such as `dirty`. `owner`, `lease`, `key` and `lease_labels` are those of its holder; null: it
    is not held. `since` is when it was granted, or else freed, or last changed.
    """

    name: str
    state: str
    raw_state: str
    labels: dict[str, str]
    owner: str | None
    lease: str | None
    key: str | None
    lease_labels: dict[str, str]
    since: datetime
    drain: SlotDrain | None
    late_releases: list[LateRelease] = field(default_factory=list)
    """Releases of it that count as those of earlier holders, the next one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPage:
    """Slots by name, and the cursor of the next page; null: this is the last."""

    slots: list[Slot]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsWanted:
    """Free slots to make in a pool with `native_slots`, all with these labels."""

    names: list[str]
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLabelsWanted:
    """All labels of a slot; others that it had are removed."""

    labels: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWanted:
    """How to drain a slot: it is never granted again, and goes once it is free.

    With `keep` it stays, until it is resumed or removed: for maintenance.
    """

    keep: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The slot after it was drained; null: it was free, and is gone."""

    slot: Slot | None
