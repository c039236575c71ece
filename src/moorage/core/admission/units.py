"""How many units a pool has in all, free, and in cooldown. Each rule is defined here once."""

from collections.abc import Callable, Collection, Sequence
from math import inf
from operator import attrgetter

from msgspec import Struct

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import (
    FREE,
    UNRETURNED,
    Cause,
    Lease,
    Need,
    Pool,
    PoolSpec,
    Rest,
    Slot,
)
from moorage.core.clock import Instant
from moorage.core.limits import RESTS_MAX
from moorage.core.wishes import suits


class SlotGroup(Struct, frozen=True, array_like=True):
    """Slots of one pool that are alike in everything that decides how many units are free."""

    state: str
    occupied: bool
    rests_until: Instant
    """As of `Slot`, or 0 if that has passed."""
    slots: int
    drained: bool = False
    """They are kept from further grants."""


class Figures(Struct, frozen=True):
    """A pool's units at one moment. In a pool with slots, only those in the state `FREE` count."""

    units: int
    """In all, see `limit_of`."""
    free: int
    """That limit and cooldown leave; negative: the pool is over its limit."""
    resting: int
    """In cooldown."""
    over: bool


def lacking(pool: Pool, slots: Collection[Slot]) -> int:
    """Return how many slots a growing pool must make for waiting tickets, within its bound.

    A free slot counts for any ticket if it is in a state that some ticket waits for, or in that of
    new slots, which is still to change.
    """
    if pool.growth is None:
        return 0
    coming = {*pool.awaited, pool.growth.state}
    idle = sum(not slot.occupied and slot.drain is None and slot.state in coming for slot in slots)
    return max(0, min(sum(pool.awaited.values()) - idle, pool.growth.most - len(slots)))


def limit_of(facts: Facts, pool: Pool) -> int:
    """Return the units of a pool: its limit, or the number of slots it has or may still make."""
    if pool.spec.limit is not None:
        return pool.spec.limit
    return units_of(pool, facts.grantable(pool.name))


def most_of(facts: Facts, pool: Pool, borrows: bool = True) -> int:
    """Return the most units that one ticket may need: a pool's units, and what it may borrow.

    `borrows`: it may borrow; a ticket with allocations does not.
    """
    if pool.spec.limit is not None:
        return pool.spec.limit + (pool.spec.borrowing if borrows else 0)
    return limit_of(facts, pool)


def limit_asked(facts: Facts, pool: Pool) -> int:
    """Return the units that a pool may have again: an adaptive limit may return to its setting."""
    limit = limit_of(facts, pool)
    return limit if pool.adaptation is None else max(limit, pool.adaptation.configured)


def units_of(pool: Pool, slots: int) -> int:
    """Return the units of a pool with this many slots, see `limit_of`."""
    if pool.spec.limit is not None:
        return pool.spec.limit
    return slots if pool.growth is None else max(slots, pool.growth.most)


def is_over(pool: Pool, units: int) -> bool:
    """Are more units occupied than a pool may? Its limit was lowered, or a lease was forced."""
    return pool.occupied > units + pool.spec.borrowing


def is_free(slot: Slot | SlotGroup, at: Instant) -> bool:
    """May a slot be granted to a ticket that wants its state?"""
    return not slot.occupied and slot.rests_until <= at and not is_drained(slot)


def is_resting(slot: Slot | SlotGroup, at: Instant) -> bool:
    """Is a slot in cooldown?"""
    return not slot.occupied and slot.rests_until > at and not is_drained(slot)


def is_drained(slot: Slot | SlotGroup) -> bool:
    """Is a slot kept from further grants?"""
    return slot.drained if isinstance(slot, SlotGroup) else slot.drain is not None


def rests(facts: Facts, pool: Pool, at: Instant, state: str = FREE, wanted: str = "") -> list[Rest]:
    """Return the units in cooldown and when it ends; in a pool with slots, those that fit."""
    if pool.spec.limit is not None:
        return [rest for rest in pool.resting if rest.until > at]
    return [
        Rest(slot.rests_until, 1)
        for slot in facts.slots.get(pool.name, {}).values()
        if slot.state == state and is_resting(slot, at) and suits(slot.labels, wanted)
    ]


def fitting(facts: Facts, need: Need, at: Instant) -> int:
    """Return the free units that a need fits: like `free_units`, with regard to labels."""
    if not need.wanted:
        return free_units(facts, facts.pools[need.pool], at).get(need.state, 0)
    return sum(
        is_free(slot, at) and slot.state == need.state and suits(slot.labels, need.wanted)
        for slot in facts.slots.get(need.pool, {}).values()
    )


def free_units(facts: Facts, pool: Pool, at: Instant) -> dict[str, int]:
    """Return the units that limit and cooldown leave, by state.

    A pool without slots has only units in `FREE`; a negative number means that it is over its
    limit. In a pool with slots, only those released as `FREE` have a cooldown.
    """
    if pool.spec.limit is not None:
        return {FREE: pool.spec.limit - pool.occupied - _resting(pool.resting, at)}
    found: dict[str, int] = {}
    for slot in facts.slots.get(pool.name, {}).values():
        if is_free(slot, at):
            found[slot.state] = found.get(slot.state, 0) + 1
    return found


def figures_of(pool: Pool, groups: Collection[SlotGroup], at: Instant) -> Figures:
    """Return a pool's figures without its slots one by one.

    Args:
        pool: any.
        groups: of its slots, all of them; empty for a pool without slots.
        at: now, in service time.
    """
    units = units_of(pool, sum(g.slots for g in groups if g.occupied or not g.drained))
    if pool.spec.limit is not None:
        resting = _resting(pool.resting, at)
        free = pool.spec.limit - pool.occupied - resting
    else:
        usable = [group for group in groups if group.state == FREE]
        free = sum(group.slots for group in usable if is_free(group, at))
        resting = sum(group.slots for group in usable if is_resting(group, at))
    return Figures(units, free, resting, is_over(pool, units))


def _resting(rests: Sequence[Rest], at: Instant) -> int:
    return sum(rest.units for rest in rests if rest.until > at) if rests else 0


def units_by_pool(needs: Sequence[Need]) -> dict[str, int]:
    """Return the units needed of each pool, in any state."""
    if len(needs) == 1:  # almost always
        return {needs[0].pool: needs[0].units}
    found: dict[str, int] = {}
    for need in needs:
        found[need.pool] = found.get(need.pool, 0) + need.units
    return found


def units_in_line(lease: Lease) -> dict[str, int]:
    """Return a lease's units by pool; of a ticket that was not granted, those that it waits for.

    If it has alternatives, these are the least that one of them needs of the pool.
    """
    if not lease.alternatives or lease.granted_at is not None:
        return units_by_pool(lease.needs)
    least: dict[str, int] = {}
    for needs in lease.alternatives:
        for pool, units in units_by_pool(needs).items():
            least[pool] = min(units, least.get(pool, units))
    return least


def is_gang(needs: tuple[Need, ...]) -> bool:
    """Does a ticket need more than one pool, or wait for more than one?"""
    return len(needs) > 1 and any(need.pool != needs[0].pool for need in needs)


def rest_of(spec: PoolSpec, cause: Cause) -> int:
    """Return the cooldown of a unit after an end (microseconds).

    It is longer if the holder may not know of the end, and may still use the unit. There is none
    if the unit was never used.
    """
    if cause == "unconfirmed":
        return 0
    if cause in UNRETURNED:
        return max(spec.cooldown, spec.lock_delay)
    return spec.cooldown


_UNTIL = attrgetter("until")


def rested(
    rests: tuple[Rest, ...], at: Instant, spec: PoolSpec, cause: Cause, units: int
) -> tuple[Rest, ...]:
    """Add the cooldown of units after an end; drop cooldowns that are over.

    At most `RESTS_MAX` entries. If there were more, all times are rounded up to a grid with
    `RESTS_MAX / 2` lines per cooldown: a cooldown becomes up to 1/32 longer, never shorter. If the
    lock-delay is longer, there are two grids, each half as fine: one up to the cooldown, one for
    longer times.
    """
    rest = rest_of(spec, cause)
    found = [one for one in rests if one.until > at] if rests else []
    if rest > 0 and units > 0:
        found.append(Rest(Instant(at + rest), units))
    if len(found) <= RESTS_MAX:
        return tuple(sorted(found, key=_UNTIL))
    lines = RESTS_MAX // 2 if spec.lock_delay <= spec.cooldown else RESTS_MAX // 4
    fine = max(1, -(-spec.cooldown // lines))
    coarse = max(1, -(-max(spec.cooldown, spec.lock_delay) // lines))
    grid: dict[int, int] = {}
    for one in found:
        step = fine if one.until <= at + spec.cooldown else coarse
        line = -(-one.until // step) * step
        grid[line] = grid.get(line, 0) + one.units
    return tuple(Rest(Instant(line), grid[line]) for line in sorted(grid))


def load_of(facts: Facts, pool_of: Callable[[str], Pool], needs: Sequence[Need]) -> list[float]:
    """Return which shares of their limits pools would have occupied, the highest first."""
    shares = []
    for name, units in units_by_pool(needs).items():
        pool = pool_of(name)
        limit = limit_of(facts, pool)
        shares.append((pool.occupied + units) / limit if limit else inf)
    return sorted(shares, reverse=True)
