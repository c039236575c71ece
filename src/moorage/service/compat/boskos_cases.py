"""The cases of Boskos: the keys that each needs, and the rule that decides it."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from uuid import NAMESPACE_OID, uuid5

from moorage.core.admission import slot_config
from moorage.core.admission.compat import boskos, slots_by_name
from moorage.core.admission.compat.boskos import Acquired, AcquireRequest
from moorage.core.admission.compat.boskos_import import Outcomes, Resource, take_over
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Immediate
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Slot
from moorage.core.admission.owners import BOSKOS
from moorage.core.admission.slot_config import SlotConfig
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase, UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.store.access.audit import AuditRow


@dataclass(slots=True)
class Acquire(UseCase[Acquired]):
    """Poll for a slot of a type."""

    request: AcquireRequest
    _ticket: LeaseId | None = None

    def keys(self) -> Keys:
        pools, known, waiters = {self.request.pool}, self.request.asked, {self.request.holder}
        return Keys(admission=AdmissionKeys(pools=pools, asked=known, waiters=waiters))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        if not self.request.request_id:
            request = boskos.now_or_never(facts, when.moment, self.request)
            self._ticket = self.request.fresh
            return Changes(admission=AdmissionChanges(polled={self._ticket}, at_once=[request]))
        changes, self._ticket = boskos.acquire_safe(facts, when.moment, when.wall, self.request)
        if self._ticket is not None:
            changes.polled.add(self._ticket)
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> Acquired:
        return boskos.acquired(world.admission, self.request, self._ticket)


@dataclass(slots=True)
class AcquireNamed(UseCase[list[Slot]]):
    """Take slots by name, all or none; waiting tickets come first. Raises NO_CAPACITY."""

    request: AcquireRequest
    names: list[str]
    fresh: list[LeaseId]
    """The ids of the leases, one per name."""
    _at_once: Immediate | None = None

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(slots={("", name) for name in self.names}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        request = boskos.named_or_never(facts, when.moment, self.request, self.names, self.fresh)
        self._at_once = request
        return Changes(admission=AdmissionChanges(at_once=[request]))

    def conclude(self, world: World, when: When) -> list[Slot]:
        request = self._at_once
        assert request is not None  # set by `decide`
        if any(ticket.id not in world.admission.leases for ticket in request.tickets):
            raise boskos.nothing(self.request.state)
        pools = [ticket.needs[0].pool for ticket in request.tickets]
        return [
            world.admission.slots[pool][name]
            for pool, name in zip(pools, request.names, strict=True)
        ]


@dataclass(slots=True)
class SlotCase(AuditedUseCase[None]):
    """A case about one slot, by name; `native`: also if a native lease occupies it."""

    name: str
    owner: str
    native: bool

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(slots={("", self.name)}))

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


@dataclass(slots=True)
class Release(SlotCase):
    """Release a slot, which changes to the state `dest`.

    This leaves an audit row if the lease was not made through Boskos, because then it is not the
    ordinary release by its holder.
    """

    dest: str
    by: Actor

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
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
        return Changes(admission=changes)


@dataclass(slots=True)
class Update(SlotCase):
    """Renew a slot and store its holder's user data."""

    state: str
    user_data: dict[str, str]

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(touched={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        changes = slots_by_name.update(
            facts,
            when.moment,
            when.wall,
            self.name,
            self.owner,
            self.state,
            self.user_data,
            native=self.native,
        )
        return Changes(admission=changes)


@dataclass(slots=True)
class Reset(AuditedUseCase[dict[str, str]]):
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
        return Keys(admission=AdmissionKeys(pools={self.pool}, holders={self.pool}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
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
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> dict[str, str]:
        return self._owners


@dataclass(slots=True)
class Sync(UseCase[tuple[str, ...]]):
    """Apply a configuration. Answer: the changes that are not possible yet."""

    config: SlotConfig
    pools: set[str]
    """All pools that have slots or are to have some."""
    seed: str
    """Random, so that the names of new slots are."""
    for_tickets: bool
    """Whether slots are made for waiting tickets, too."""
    _problems: tuple[str, ...] = ()

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools=self.pools))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        numbers = count()

        def fresh() -> str:
            return str(uuid5(NAMESPACE_OID, f"{self.seed}/{next(numbers)}"))

        changes, self._problems = slot_config.sync(
            facts, when.wall, self.config, fresh, for_tickets=self.for_tickets
        )
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> tuple[str, ...]:
        return self._problems


@dataclass(slots=True)
class ImportResources(AuditedUseCase[Outcomes]):
    """Give the slots of a pool what Boskos says of its resources."""

    pool: str
    resources: list[Resource]
    fresh: list[LeaseId]
    """The ids of leases, one for each resource."""
    by: Actor
    _outcomes: Outcomes = field(default_factory=lambda: Outcomes({}, {}))

    def keys(self) -> Keys:
        slots = {("", one.name) for one in self.resources}
        return Keys(admission=AdmissionKeys(pools={self.pool}, slots=slots))

    def decide(self, world: World, when: When) -> Changes:
        changes, self._outcomes = take_over(
            world.admission, when.moment, when.wall, self.pool, self.resources, self.fresh
        )
        after = dict(Counter(self._outcomes.found.values()))
        row = audit_entry(when.wall, self.by, "boskos.import", self.pool, after=after)
        self.rows = [row] if changes.slots else []
        return Changes(admission=changes)

    def conclude(self, world: World, when: When) -> Outcomes:
        return self._outcomes


def _row(when: When, by: Actor, action: str, slot: Slot, dest: str) -> AuditRow:
    """Return the audit row: who took a slot from whom, and its new state."""
    return audit_entry(
        when.wall,
        by,
        action,
        f"{slot.pool}/{slot.name}",
        before={"owner": slot.owner, "lease": slot.lease, "state": slot.state},
        after={"state": dest},
    )
