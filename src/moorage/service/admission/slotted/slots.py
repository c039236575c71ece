"""Named slots of pools, for operators: lists, and changes of single slots."""

from collections.abc import Iterator

from msgspec import Struct

from moorage.core.admission import late_releases
from moorage.core.admission.late_releases import OWNER
from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.admission.pools import not_found
from moorage.core.admission.units import is_resting
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import PROXY_UNITS_MAX
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.access.audit import Actor
from moorage.service.admission.slotted import slot_cases
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
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

    def __init__(self, engine: Engine, transactor: Transactor, service_clock: ServiceClock) -> None:
        self._engine = engine
        self._transactor = transactor
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

    async def add(self, pool: str, names: list[str], labels: dict[str, str], by: Actor) -> None:
        """Make free slots with these labels."""
        await self._transactor.submit(slot_cases.SlotsAdd(pool, names, labels, by))

    async def label(self, pool: str, name: str, labels: dict[str, str], by: Actor) -> None:
        """Replace the labels of a slot."""
        await self._transactor.submit(slot_cases.SlotLabel(pool, name, by, labels))

    async def drain(self, pool: str, name: str, by: Actor, *, keep: bool, reason: str) -> None:
        """Keep a slot from further grants; unless `keep`, it goes once it is free."""
        await self._transactor.submit(slot_cases.SlotDrain(pool, name, by, keep, reason))

    async def resume(self, pool: str, name: str, by: Actor) -> None:
        """Let a drained slot be granted again."""
        await self._transactor.submit(slot_cases.SlotResume(pool, name, by))

    async def remove(self, pool: str, name: str, by: Actor) -> None:
        """Remove a free slot."""
        await self._transactor.submit(slot_cases.SlotRemove(pool, name, by))

    async def owed(self, lease: Lease) -> list[OwedView]:
        """Return the releases by name that may be those of a lease of the lease proxy.

        While it has its slots, also those that count as those of earlier holders.
        """
        if lease.owner != OWNER or lease.state == "waiting":
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
