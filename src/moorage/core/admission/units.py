"""How many units a pool has in all, free, and in cooldown. Each rule is defined here once."""

from collections.abc import Collection, Iterable

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import FREE, UNRETURNED, Cause, Need, Pool, PoolSpec, Rest, Slot
from moorage.core.clock import Instant
from moorage.core.limits import RESTS_MAX


def lacking(pool: Pool, slots: Collection[Slot]) -> int:
    """Return how many slots a growing pool must make for waiting tickets, within its bound.

    A free slot counts for any ticket if it is in a state that some ticket waits for, or in that of
    new slots, which is still to change.
    """
    if pool.growth is None:
        return 0
    coming = {*pool.awaited, pool.growth.state}
    idle = sum(not slot.owner and slot.state in coming for slot in slots)
    return max(0, min(sum(pool.awaited.values()) - idle, pool.growth.most - len(slots)))


def limit_of(facts: Facts, pool: Pool) -> int:
    """Return the units of a pool: its limit, or the number of slots it has or may still make."""
    if pool.spec.limit is not None:
        return pool.spec.limit
    slots = len(facts.slots.get(pool.name, {}))
    return slots if pool.growth is None else max(slots, pool.growth.most)


def resting(pool: Pool, at: Instant) -> int:
    """Return how many freed units are in cooldown."""
    return sum(rest.units for rest in pool.resting if rest.until > at)


def free_units(facts: Facts, pool: Pool, at: Instant) -> dict[str, int]:
    """Return the units that limit and cooldown leave, by state.

    A pool without slots has only units in `FREE`; a negative number means that it is over its
    limit. In a pool with slots, only those released as `FREE` have a cooldown.
    """
    if pool.spec.limit is not None:
        idle = resting(pool, at) if pool.resting else 0
        return {FREE: pool.spec.limit - pool.occupied - idle}
    found: dict[str, int] = {}
    for slot in facts.slots.get(pool.name, {}).values():
        if not slot.owner and slot.rests_until <= at:
            found[slot.state] = found.get(slot.state, 0) + 1
    return found


def units_by_pool(needs: Iterable[Need]) -> dict[str, int]:
    """Return the units needed of each pool, in any state."""
    found: dict[str, int] = {}
    for need in needs:
        found[need.pool] = found.get(need.pool, 0) + need.units
    return found


def is_gang(needs: tuple[Need, ...]) -> bool:
    """Does a ticket need more than one pool?"""
    return len(needs) > 1 and any(need.pool != needs[0].pool for need in needs)


def rest_of(spec: PoolSpec, cause: Cause) -> int:
    """Return the cooldown of a unit after an end (microseconds).

    It is longer if the holder may not know of the end, and may still use the unit.
    """
    if cause in UNRETURNED:
        return max(spec.cooldown, spec.lock_delay)
    return spec.cooldown


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
    found = [one for one in rests if one.until > at]
    if rest > 0 and units > 0:
        found.append(Rest(Instant(at + rest), units))
    if len(found) <= RESTS_MAX:
        return tuple(sorted(found, key=lambda one: one.until))
    lines = RESTS_MAX // 2 if spec.lock_delay <= spec.cooldown else RESTS_MAX // 4
    fine = max(1, -(-spec.cooldown // lines))
    coarse = max(1, -(-max(spec.cooldown, spec.lock_delay) // lines))
    grid: dict[int, int] = {}
    for one in found:
        step = fine if one.until <= at + spec.cooldown else coarse
        line = -(-one.until // step) * step
        grid[line] = grid.get(line, 0) + one.units
    return tuple(Rest(Instant(line), grid[line]) for line in sorted(grid))
