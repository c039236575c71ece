"""Named units of a pool: which one is granted next, and how grants and ends change them.

The `lease` of an occupied slot is live, and a live lease has exactly the slots that refer to it.
The slot that has been free longest is granted first, ties by name. If tickets ask for labels, each
gets the slot that the fewest other labels in the line ask for (`IdleSlots`): one that is content
with any slot does not take the only one that suits another while there are others.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from moorage.core.admission import late_releases
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import (
    FREE,
    Cause,
    Lease,
    Need,
    Pool,
    Slot,
)
from moorage.core.admission.owners import BOSKOS
from moorage.core.admission.units import is_resting, rest_of
from moorage.core.clock import Instant
from moorage.core.service_time import Moment
from moorage.core.wishes import suits

Slots = dict[tuple[str, str], Slot | None]
"""After-images by pool and name, as `Changes.slots` has them."""


def slot_owner(owner: str) -> str:
    """Return the name of a lease's owner on its slots."""
    return owner.removeprefix(BOSKOS)


def free(slots: Iterable[Slot], at: Instant, state: str = FREE) -> list[Slot]:
    """Return the free slots in this state, the longest free first.

    Those in cooldown at this service time come last.
    """
    found = [
        slot for slot in slots if not slot.occupied and slot.state == state and slot.drain is None
    ]
    return sorted(found, key=lambda slot: (is_resting(slot, at), slot.updated_at, slot.name))


def occupied(
    moment: Moment, wall: Instant, lease: Lease, slots: Iterable[Slot], dest: str
) -> Slots:
    """Return these slots as occupied by a lease."""
    owner = slot_owner(lease.owner)
    return {
        (slot.pool, slot.name): structs.replace(
            slot,
            owner=owner,
            lease=lease.id,
            state=dest,
            updated_at=wall,
            heard_at=moment.alive,
        )
        for slot in slots
    }


def named(slots: Slots) -> dict[str, tuple[str, ...]]:
    """Return the names of slots by pool, sorted: the form of `Lease.slots`."""
    found: dict[str, tuple[str, ...]] = {}
    for pool, name in sorted(slots):
        found[pool] = (*found.get(pool, ()), name)
    return found


class LeaseEnd(Struct, frozen=True):
    """When a lease ends, or releases some of its slots, and why."""

    moment: Moment
    wall: Instant
    cause: Cause
    gone: bool = False
    """Its holder is known to be gone: no release by name is expected of it."""


def give_back(
    facts: Facts, lease: Lease, end: LeaseEnd, states: Mapping[str, str] | None = None
) -> Slots:
    """Free all slots of a lease.

    Args:
        facts: in which the lease occupies them.
        lease: that ends.
        end: when and why.
        states: the new states of slots, by pool. By default `FREE`, or those before the grant if
            its holder never knew of it.
    """
    held = [slot for slot in facts.slots_of(lease.slots) if slot.lease == lease.id]
    states = states or {}
    return {
        (slot.pool, slot.name): freed(
            slot,
            lease,
            facts.pools.get(slot.pool),
            end,
            states.get(slot.pool) or _state_after(slot, lease, end.cause),
        )
        for slot in held
    }


def _state_after(slot: Slot, lease: Lease, cause: Cause) -> str:
    """Return the state of a slot after the end of a lease, unless its holder names one."""
    if cause != "unconfirmed":
        return FREE
    before = (n.state for n in lease.needs if (n.pool, n.dest) == (slot.pool, slot.state))
    return next(before, FREE)


def freed(slot: Slot, lease: Lease, pool: Pool | None, end: LeaseEnd, state: str) -> Slot | None:
    """Return a slot after this lease has released it; None: it was drained, and goes now.

    A slot of a growing pool expires after the pool's lifespan from now; slots of other pools do not
    expire. A slot in another state than `FREE` has no cooldown.
    """
    if slot.drain is not None and slot.drain.goes:
        return None
    at, growth = end.moment.at, None if pool is None else pool.growth
    expires_at = None if growth is None else slot.expires_at
    if growth is not None and growth.lifespan is not None:
        expires_at = Instant(end.wall + growth.lifespan)
    rest = 0 if pool is None or state != FREE else rest_of(pool.spec, end.cause)
    return structs.replace(
        slot,
        owner="",
        lease=None,
        state=state,
        updated_at=end.wall,
        expires_at=expires_at,
        rests_until=Instant(at + rest) if rest else Instant(0),
        late=late_releases.expected(slot, lease, end.cause, at, gone=end.gone),
        doubtful=(),
    )


class _Suited(Struct, frozen=True):
    """A free slot, and the labels in the line that it has."""

    slot: Slot
    wanted: tuple[str, ...]


class IdleSlots:
    """The free slots of a pool that this scan has neither granted nor set aside."""

    def __init__(self, facts: Facts, pool: Pool, at: Instant) -> None:
        self._slots = facts.slots.get(pool.name, {})
        self._at = at
        self._by_state: dict[str, list[Slot]] = {}
        """Free slots by state, the next to be granted last."""
        self._suited: dict[str, _Suited] = {}
        """By name, those that may be granted now; empty if no ticket asks for labels."""
        self._left: dict[str, int] = dict.fromkeys(pool.sought, 0)
        if self._left:
            for slot in self.of(FREE):
                if not is_resting(slot, at):
                    wanted = tuple(text for text in self._left if suits(slot.labels, text))
                    self._suited[slot.name] = _Suited(slot, wanted)
                    self._count(wanted, 1)

    @property
    def by_label(self) -> bool:
        """Does a ticket of the line ask for labels?"""
        return bool(self._left)

    def of(self, state: str) -> list[Slot]:
        """Return the free slots in a state, the next to be granted last."""
        found = self._by_state.get(state)
        if found is None:
            found = free(self._slots.values(), self._at, state)[::-1]
            self._by_state[state] = found
        return found

    def left(self, wanted: str) -> int:
        """Return how many slots with these labels may be granted now."""
        return self._left.get(wanted, 0)

    def fitting(self, need: Need) -> int:
        """Return how many free slots a need fits, those in cooldown included."""
        return sum(suits(slot.labels, need.wanted) for slot in self.of(need.state))

    def take(self, need: Need, units: int) -> list[Slot]:
        """Remove and return up to this many slots for a need, those not in cooldown first."""
        chosen = self._chosen(need, units)
        for slot in chosen:
            self.remove(slot)
        return chosen

    def remove(self, slot: Slot) -> None:
        """Remove one slot: it is granted, or set aside."""
        self.of(slot.state).remove(slot)
        known = self._suited.pop(slot.name, None)
        if known is not None:
            self._count(known.wanted, -1)

    def set_aside(self, need: Need, units: int) -> int:
        """Keep up to this many slots, none in cooldown, from later tickets; return how many.

        It matters which ones only if the line asks for labels; otherwise the caller counts.
        """
        if not self.by_label or need.state != FREE:
            return units
        kept = [slot for slot in self._chosen(need, units) if not is_resting(slot, self._at)]
        for slot in kept:
            self.remove(slot)
        return len(kept)

    def _chosen(self, need: Need, units: int) -> list[Slot]:
        if not self.by_label or need.state != FREE:
            return self.of(need.state)[-units:][::-1]
        fitting = [slot for slot in reversed(self.of(FREE)) if suits(slot.labels, need.wanted)]
        fitting.sort(key=lambda slot: (is_resting(slot, self._at), self._others(slot, need)))
        return fitting[:units]

    def _others(self, slot: Slot, need: Need) -> int:
        """Return how many other wishes a slot suits."""
        known = self._suited.get(slot.name)
        return 0 if known is None else sum(text != need.wanted for text in known.wanted)

    def _count(self, wanted: tuple[str, ...], sign: int) -> None:
        for text in wanted:
            self._left[text] += sign


def slot_new(pool: str, name: str, state: str, wall: Instant, dynamic: bool = False) -> Slot:
    """Return a new free slot."""
    return Slot(
        pool=pool,
        name=name,
        state=state or FREE,
        owner="",
        lease=None,
        user_data={},
        updated_at=wall,
        dynamic=dynamic,
    )
