"""What a decision of admission may read, and what it may change.

All of admission is decided under one lock, the row of the `Timeline`, so nothing here is guarded
by generations: what was loaded is what is stored. Lines are loaded in pages, when `admit` asks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import structs

from moorage.core.admission.model import Lease, Outcome, Pool, Slot, Timeline, Token
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId


@dataclass(slots=True)
class Keys:
    """What to load. Every member but `due` is a set, so that a batch's keys are their union.

    Loaded besides: the timeline; every pool that a lease needs (but for `heard`); and if one of the
    pools has gangs in its line, all pools that have; of each pool all slots, and if it has a quota,
    the units that each owner holds.
    """

    pools: set[str] = field(default_factory=set)
    leases: set[LeaseId] = field(default_factory=set)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """(owner, key) of leases that may exist, ended ones included."""
    slots: set[tuple[str, str]] = field(default_factory=set)
    """(pool, slot) whose holders' leases are needed; pool "" stands for any pool."""
    ends: set[str] = field(default_factory=set)
    """Pools of which every live lease and ticket is needed."""
    quotas: set[str] = field(default_factory=set)
    """Pools that are to have a quota, whether or not they have one: what each owner holds."""
    due: Instant | None = None
    """Also leases and tickets that are due at this service time, and pools to be woken: the
    first `DUE_MAX` of each."""
    holders: set[str] = field(default_factory=set)
    """Pools of which every granted lease is needed."""
    heard: set[LeaseId] = field(default_factory=set)
    """Leases that are needed by themselves, without their pools: nobody is granted for them."""
    touched: set[str] = field(default_factory=set)
    """Names of slots that are needed with the leases that hold them, without their pools."""

    def update(self, other: "Keys") -> None:
        """Add the keys of another request of the same batch."""
        self.pools |= other.pools
        self.leases |= other.leases
        self.asked |= other.asked
        self.slots |= other.slots
        self.ends |= other.ends
        self.holders |= other.holders
        self.heard |= other.heard
        self.touched |= other.touched
        self.quotas |= other.quotas
        if other.due is not None:
            self.due = other.due if self.due is None else max(self.due, other.due)

    def __len__(self) -> int:
        """Return how many things are asked for."""
        named = len(self.pools) + len(self.leases) + len(self.asked)
        named += len(self.slots) + len(self.ends) + len(self.quotas)
        named += len(self.holders) + len(self.heard) + len(self.touched)
        return named + (self.due is not None)


@dataclass(slots=True)
class Line:
    """The first tickets of a pool's line by (priority, arrival), as stored before the batch."""

    tickets: list[LeaseId] = field(default_factory=list)
    whole: bool = False
    """There are no more."""


@dataclass(slots=True)
class Changes:
    """After-images, by key. None: it is gone. Within a batch the last one counts."""

    pools: dict[str, Pool | None] = field(default_factory=dict)
    leases: dict[LeaseId, Lease | None] = field(default_factory=dict)
    slots: dict[tuple[str, str], Slot | None] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    heard: dict[LeaseId, Instant] = field(default_factory=dict)
    """New `heard_until` of leases that are otherwise as they were: no change rows, no revision."""
    postponed: set[LeaseId] = field(default_factory=set)
    """Leases as they were, of which the stored due time is too early by now (`due_of` with the
    timeline is right): to be stored anew, likewise without change rows."""
    timeline: Timeline | None = None
    """Likewise without change rows and revision."""
    unfinished: set[str] = field(default_factory=set)
    """Pools in whose lines not everybody could be tried; to be looked at again. Not stored."""

    def update(self, other: "Changes") -> None:
        """Let the after-images of a later decision override those here."""
        self.pools.update(other.pools)
        self.leases.update(other.leases)
        for lease in other.leases:
            self.heard.pop(lease, None)
        self.slots.update(other.slots)
        self.outcomes.extend(other.outcomes)
        for lease, until in other.heard.items():
            changed = self.leases.get(lease)
            if changed is None:
                self.heard[lease] = until
            else:
                self.leases[lease] = structs.replace(changed, heard_until=until)
        self.postponed |= other.postponed
        self.timeline = other.timeline or self.timeline
        self.unfinished |= other.unfinished

    def __bool__(self) -> bool:
        return self.told or bool(self.heard or self.postponed) or self.timeline is not None

    @property
    def told(self) -> bool:
        """Is there anything that followers are told, with a revision?"""
        return bool(self.pools or self.leases or self.slots or self.outcomes)

    def stamp(self, epoch: int, revision: int) -> None:
        """Give every lease that this batch grants its token; before that only `n` is known."""
        for key, lease in self.leases.items():
            if lease is not None and lease.token is not None and lease.token.revision == 0:
                token = Token(epoch, revision, lease.token.n)
                self.leases[key] = structs.replace(lease, token=token)


@dataclass(slots=True)
class Facts:
    """What was loaded for a batch, as changed by its decisions so far."""

    timeline: Timeline = field(default_factory=Timeline)
    pools: dict[str, Pool] = field(default_factory=dict)
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    asked: dict[tuple[str, str], LeaseId] = field(default_factory=dict)
    """Of all loaded leases, and of those that `Keys.asked` named."""
    slots: dict[str, dict[str, Slot]] = field(default_factory=dict)
    """All slots of every loaded pool, by pool and name; an empty dict: the pool has none. Of a pool
    that is not loaded those that `Keys.touched` named."""
    held: dict[tuple[str, str], int] = field(default_factory=dict)
    """Units that an owner holds, by (pool, owner), of pools with a quota and of `Keys.quotas`."""
    waits: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tickets with which an owner of `Keys.asked` waits, by (pool, owner), of pools in whose lines
    those could be too many; elsewhere, and of others, what this batch has added."""
    lines: dict[str, Line] = field(default_factory=dict)
    due: list[LeaseId] = field(default_factory=list)
    grants: int = 0
    """Granted in this batch so far: the `n` of the next token."""

    def apply(self, changes: Changes) -> None:
        """Make the changes of one decision visible to the next."""
        if changes.timeline is not None:
            self.timeline = changes.timeline
        for name, pool in changes.pools.items():
            if pool is None:
                self.pools.pop(name, None)
            else:
                self.pools[name] = pool
                self.slots.setdefault(name, {})
        for key, lease in changes.leases.items():
            self._lease(key, lease)
        for (pool_name, name), slot in changes.slots.items():
            named = self.slots.setdefault(pool_name, {})
            if slot is None:
                named.pop(name, None)
            else:
                named[name] = slot
        for key, until in changes.heard.items():
            self.leases[key] = structs.replace(self.leases[key], heard_until=until)

    def slots_of(self, pools: Iterable[str]) -> Iterable[Slot]:
        """Yield the slots of some pools."""
        for pool in pools:
            yield from self.slots.get(pool, {}).values()

    def _lease(self, key: LeaseId, lease: Lease | None) -> None:
        before = self.leases.pop(key, None)
        if before is not None:
            self._hold(before, -1)
            self.asked.pop((before.owner, before.key), None)
        if lease is not None:
            self.leases[key] = lease
            self.asked[lease.owner, lease.key] = key
            self._hold(lease, 1)
            was = None if before is None else before.state
            self.grants += lease.state == "granted" and was != "granted"

    def _hold(self, lease: Lease, sign: int) -> None:
        if lease.state == "waiting":
            for pool in {need.pool for need in lease.needs}:
                self.waits[pool, lease.owner] = self.waits.get((pool, lease.owner), 0) + sign
        if lease.state != "granted":
            return
        for need in lease.needs:
            at = (need.pool, lease.owner)
            self.held[at] = self.held.get(at, 0) + sign * need.units
