"""Named units of a pool: which one is granted next, and how grants and ends change them.

The `lease` of an occupied slot is live, and a live lease has exactly the slots that refer to it.
The slot that has been free longest is granted first, ties by name.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from moorage.core.admission import late_releases
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, Cause, Lease, Pool, Slot
from moorage.core.admission.owners import BOSKOS
from moorage.core.admission.units import is_resting, rest_of
from moorage.core.clock import Instant
from moorage.core.service_time import Moment

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
