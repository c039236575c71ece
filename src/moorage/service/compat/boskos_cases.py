"""The cases of Boskos: the keys that each needs, and the rule that decides it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from moorage.core.admission import slot_config
from moorage.core.admission.compat import boskos, boskos_strict, slots_by_name
from moorage.core.admission.compat.boskos import Acquired, Wish
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.immediate import AtOnce
from moorage.core.admission.model import Slot
from moorage.core.admission.slot_config import SlotConfig
from moorage.core.admission.slots import BOSKOS
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.access.audit import Actor, audit_row
from moorage.service.batch.use_case import AdmissionCase, AuditedCase
from moorage.service.ids import lease_id_new
from moorage.store.access.audit import AuditRow


@dataclass(slots=True)
class Acquire(AdmissionCase[Acquired]):
    """Poll for a slot of a type."""

    wish: Wish
    strict: bool
    _ticket: LeaseId | None = None
    _at_once: tuple[AtOnce, ...] = ()

    def keys(self) -> Keys:
        pools = {self.wish.pool}
        if self.strict:
            return Keys(pools=pools, ends=pools)
        return Keys(pools=pools, asked=self.wish.asked)

    def decide(self, facts: Facts, when: When) -> Changes:
        if not (self.strict or self.wish.request_id):
            self._at_once = (boskos.now_or_never(facts, when.moment, self.wish),)
            self._ticket = self.wish.fresh
            return Changes()
        decide = boskos_strict.acquire_strict if self.strict else boskos.acquire_safe
        changes, self._ticket = decide(facts, when.moment, when.wall, self.wish)
        return changes

    def polled(self) -> frozenset[LeaseId]:
        if self.strict or self._ticket is None:
            return frozenset()
        return frozenset({self._ticket})

    def at_once(self) -> tuple[AtOnce, ...]:
        return self._at_once

    def conclude(self, facts: Facts, when: When) -> Acquired:
        return boskos.acquired(facts, self.wish, self._ticket, strict=self.strict)


@dataclass(slots=True)
class AcquireNamed(AdmissionCase[list[Slot]]):
    """Take slots by name, all or none; waiting tickets come first. Raises NO_CAPACITY."""

    wish: Wish
    names: list[str]
    _at_once: AtOnce | None = None

    def keys(self) -> Keys:
        return Keys(slots={("", name) for name in self.names})

    def decide(self, facts: Facts, when: When) -> Changes:
        fresh = [lease_id_new() for _ in self.names]
        self._at_once = boskos.named_or_never(facts, when.moment, self.wish, self.names, fresh)
        return Changes()

    def at_once(self) -> tuple[AtOnce, ...]:
        return () if self._at_once is None else (self._at_once,)

    def conclude(self, facts: Facts, when: When) -> list[Slot]:
        wish = self._at_once
        assert wish is not None  # set by `decide`
        if any(ticket.id not in facts.leases for ticket in wish.tickets):
            raise boskos.nothing(self.wish.state)
        pools = [ticket.needs[0].pool for ticket in wish.tickets]
        return [facts.slots[pool][name] for pool, name in zip(pools, wish.names, strict=True)]


@dataclass(slots=True)
class TakeNamed(AdmissionCase[list[Slot]]):
    """Take slots by name as Boskos does. Raises NO_CAPACITY, but keeps the slots it could take."""

    wish: Wish
    names: list[str]
    _taken: list[tuple[str, str]] | None = None

    def keys(self) -> Keys:
        return Keys(slots={("", name) for name in self.names})

    def decide(self, facts: Facts, when: When) -> Changes:
        fresh = [lease_id_new() for _ in self.names]
        changes, self._taken = boskos_strict.take_named(
            facts, when.moment, when.wall, self.wish, self.names, fresh
        )
        return changes

    def conclude(self, facts: Facts, when: When) -> list[Slot]:
        if self._taken is None:
            raise boskos.nothing(self.wish.state)
        return [facts.slots[pool][name] for pool, name in self._taken]


@dataclass(slots=True)
class SlotCase(AuditedCase[None]):
    """A case about one slot, by name; `native`: also if a native lease occupies it."""

    name: str
    owner: str
    native: bool

    def keys(self) -> Keys:
        return Keys(slots={("", self.name)})

    def conclude(self, facts: Facts, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class Release(SlotCase):
    """Release a slot, which changes to the state `dest`.

    This leaves an audit row if the lease was not made through Boskos, because then it is not the
    ordinary release by its holder.
    """

    dest: str
    by: Actor

    def decide(self, facts: Facts, when: When) -> Changes:
        slot = slots_by_name.slot_named(facts, self.name)
        changes = slots_by_name.release(
            facts,
            when.moment,
            when.wall,
            self.name,
            self.dest,
            self.owner,
            native=self.native,
        )
        self.rows = []
        lease = None if slot is None or slot.lease is None else facts.leases[slot.lease]
        if slot is not None and lease is not None and not lease.owner.startswith(BOSKOS):
            self.rows = [_row(when, self.by, "slot.release", slot, self.dest)]
        return changes


@dataclass(slots=True)
class Update(SlotCase):
    """Renew a slot and store its holder's user data."""

    state: str
    user_data: dict[str, str]

    def keys(self) -> Keys:
        return Keys(touched={self.name})

    def decide(self, facts: Facts, when: When) -> Changes:
        return slots_by_name.update(
            facts,
            when.moment,
            when.wall,
            self.name,
            self.owner,
            self.state,
            self.user_data,
            native=self.native,
        )


@dataclass(slots=True)
class Reset(AuditedCase[dict[str, str]]):
    """Take away slots that were not renewed. Answer: the previous owners, by name of the slot.

    Each slot leaves an audit row.
    """

    pool: str
    state: str
    expire: int
    """Nanoseconds."""
    dest: str
    native: bool
    by: Actor
    _owners: dict[str, str] = field(default_factory=dict)

    def keys(self) -> Keys:
        return Keys(pools={self.pool}, holders={self.pool})

    def decide(self, facts: Facts, when: When) -> Changes:
        changes, self._owners = slots_by_name.reset(
            facts,
            when.moment,
            when.wall,
            self.pool,
            self.state,
            self.expire,
            self.dest,
            native=self.native,
        )
        slots = facts.slots.get(self.pool, {})
        self.rows = [
            _row(when, self.by, "slot.reset", slots[name], self.dest) for name in self._owners
        ]
        return changes

    def conclude(self, facts: Facts, when: When) -> dict[str, str]:
        return self._owners


@dataclass(slots=True)
class Sync(AdmissionCase[tuple[str, ...]]):
    """Apply a configuration. Answer: the changes that are not possible yet."""

    config: SlotConfig
    pools: set[str]
    """All pools that have slots or are to have some."""
    strict: bool = False
    fresh: Callable[[], str] = lambda: str(uuid4())
    _problems: tuple[str, ...] = ()

    def keys(self) -> Keys:
        return Keys(pools=self.pools)

    def decide(self, facts: Facts, when: When) -> Changes:
        changes, self._problems = slot_config.sync(
            facts, when.wall, self.config, self.fresh, strict=self.strict
        )
        return changes

    def conclude(self, facts: Facts, when: When) -> tuple[str, ...]:
        return self._problems


def _row(when: When, by: Actor, action: str, slot: Slot, dest: str) -> AuditRow:
    """Return the audit row: who took a slot from whom, and its new state."""
    return audit_row(
        when.wall,
        by,
        action,
        f"{slot.pool}/{slot.name}",
        before={"owner": slot.owner, "lease": slot.lease, "state": slot.state},
        after={"state": dest},
    )
