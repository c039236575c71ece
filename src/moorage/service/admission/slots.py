"""Named slots, for operators: lists, and changes of single slots, which leave audit rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from moorage.core.admission import late_releases, slot_changes
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.pools import not_found
from moorage.core.admission.units import is_resting
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import PROXY_UNITS_MAX
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.pages import page_of, rows_to_read
from moorage.store.admission import reads
from moorage.store.api import Engine

HELD, DRAINING, DRAINED, RESTING = "held", "draining", "drained", "resting"
"""States for people, of slots that cannot be granted as they are."""


class OwedView(Struct, frozen=True):
    """A release by name that counts, or has counted, as that of one of these leases."""

    pool: str
    slot: str
    leases: tuple[LeaseId, ...]
    """Whose it may be; empty: it is not known whose."""
    until: Instant | None
    """Wall-clock time until which it is expected; None: one has come."""


class SlotView(Struct, frozen=True):
    """A slot with its holder. Times are by the wall clock."""

    slot: Slot
    state: str
    """One word for people, see `wire.slots.Slot`."""
    lease: Lease | None
    since: Instant
    """When it was granted, or else last changed."""
    owed: tuple[OwedView, ...] = ()


class Slots:
    """The named slots of one service. Every method raises `Error`."""

    def __init__(self, engine: Engine, service_clock: ServiceClock) -> None:
        self._engine = engine
        self._service_clock = service_clock

    async def page(
        self, pool: str, cursor: str | None, limit: int
    ) -> tuple[list[SlotView], str | None]:
        """Return slots of a pool by name, and the next cursor. Raises POOL_NOT_FOUND, INVALID."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            seen = await self._engine.read(reads.slots_window(pool, cursor or "", rows_max))
        _check_slotted(pool, seen.pool)
        when = self._service_clock.estimate(seen.timeline)
        page, following = page_of(seen.slots, limit, lambda one: one.slot.name)
        return [slot_view(one.slot, one.lease, when) for one in page], following

    async def owed(self, lease: Lease) -> list[OwedView]:
        """Return the releases by name that may be those of a lease of the lease proxy.

        While it has its slots, also those that count as those of earlier holders.
        """
        if lease.owner != LEASE_PROXY or lease.state == "waiting":
            return []
        pools = {need.pool for need in lease.needs}
        with errors.translated():
            plan = reads.slots_naming_load(pools, lease.id, PROXY_UNITS_MAX)
            timeline, slots = await self._engine.read_aside(plan)
        when = self._service_clock.estimate(timeline)
        found = (one for slot in slots for one in _owed(slot, when))
        held = {(slot.pool, slot.name) for slot in slots if slot.lease == lease.id}
        return [one for one in found if lease.id in one.leases or (one.pool, one.slot) in held]

    async def one(self, pool: str, name: str) -> SlotView | None:
        """Return a slot; None: there is none of this name."""
        with errors.translated():
            seen = await self._engine.read(reads.slot_load(pool, name))
        if not seen.slots:
            return None
        found = seen.slots[0]
        return slot_view(found.slot, found.lease, self._service_clock.estimate(seen.timeline))


def slot_view(slot: Slot, lease: Lease | None, when: When) -> SlotView:
    """Return a slot as people see it."""
    since = slot.updated_at
    if lease is not None and lease.granted_at is not None:
        since = Instant(lease.granted_at + when.wall - when.moment.at)
    return SlotView(slot, _state_of(slot, when), lease, since, tuple(_owed(slot, when)))


def _owed(slot: Slot, when: When) -> Iterator[OwedView]:
    """Yield the releases of a slot that have come instead of the holder's own, or may come."""
    if slot.doubtful and slot.lease is not None:
        yield OwedView(slot.pool, slot.name, (*slot.doubtful, slot.lease), None)
    for one in late_releases.owed(slot, when.moment.at):
        until = Instant(one.until + when.wall - when.moment.at)
        yield OwedView(slot.pool, slot.name, one.leases, until)


def _state_of(slot: Slot, when: When) -> str:
    if slot.drain is not None:
        return DRAINING if slot.occupied else DRAINED
    if slot.occupied:
        return HELD
    return RESTING if is_resting(slot, when.moment.at) else slot.state


def _check_slotted(name: str, pool: Pool | None) -> None:
    if pool is None:
        raise not_found(name)
    if pool.spec.limit is not None:
        raise Error(
            Code.INVALID,
            f"Pool '{name}' has a limit and no named slots: `lease list --pool` shows its holders.",
        )


@dataclass(slots=True)
class SlotsAdd(AuditedUseCase[None]):
    """Make slots in a pool with native slots."""

    pool: str
    names: list[str]
    labels: dict[str, str]
    by: Actor

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.pool}, touched={*self.names}))

    def decide(self, world: World, when: When) -> Changes:
        made = slot_changes.add(world.admission, when.wall, self.pool, self.names, self.labels)
        names = sorted(name for _, name in made.slots)
        after = {"slots": names, "labels": self.labels}
        row = audit_entry(when.wall, self.by, "slot.add", self.pool, None, after)
        self.rows = [row] if names else []
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class SlotCase(AuditedUseCase[Slot | None]):
    """A change of one slot by an operator. Returns it; None: it is gone."""

    pool: str
    name: str
    by: Actor

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={self.pool}))

    def conclude(self, world: World, when: When) -> Slot | None:
        return world.admission.slots.get(self.pool, {}).get(self.name)

    def leave(
        self, action: str, when: When, made: tuple[AdmissionChanges, Slot, Slot | None]
    ) -> Changes:
        """Set the audit row of a decision, unless it changes nothing; return its changes."""
        changes, before, after = made
        target = f"{self.pool}/{self.name}"
        row = audit_entry(
            when.wall, self.by, action, target, _state_shown(before), _state_shown(after)
        )
        self.rows = [row] if before != after else []
        return Changes(admission=changes)


@dataclass(slots=True)
class SlotLabel(SlotCase):
    """Replace the labels of a slot."""

    labels: Mapping[str, str]

    def decide(self, world: World, when: When) -> Changes:
        made = slot_changes.label(world.admission, self.pool, self.name, self.labels)
        return self.leave("slot.label", when, made)


@dataclass(slots=True)
class SlotDrain(SlotCase):
    """Keep a slot from further grants."""

    keep: bool
    reason: str

    def decide(self, world: World, when: When) -> Changes:
        made = slot_changes.drain(
            world.admission, when.wall, self.pool, self.name, keep=self.keep, reason=self.reason
        )
        return self.leave("slot.drain", when, made)


@dataclass(slots=True)
class SlotResume(SlotCase):
    """Let a drained slot be granted again."""

    def decide(self, world: World, when: When) -> Changes:
        made = slot_changes.resume(world.admission, self.pool, self.name)
        return self.leave("slot.resume", when, made)


@dataclass(slots=True)
class SlotRemove(SlotCase):
    """Remove a free slot."""

    def decide(self, world: World, when: When) -> Changes:
        changes, before = slot_changes.remove(world.admission, self.pool, self.name)
        return self.leave("slot.remove", when, (changes, before, None))


def _state_shown(slot: Slot | None) -> Any:
    """Return what operators change of a slot."""
    if slot is None:
        return None
    shown = {"labels": slot.labels, "owner": slot.owner, "drain": None, "reason": ""}
    if slot.drain is not None:
        shown |= {"drain": "goes" if slot.drain.goes else "stays", "reason": slot.drain.reason}
    return shown
