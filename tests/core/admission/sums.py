"""Recomputes the stored sums from the leases and compares them."""

from collections.abc import Callable

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Lease, Need, Pool
from moorage.core.admission.units import units_by_pool


def sums_differ(facts: Facts) -> list[str]:
    """Describe every stored sum and every slot that contradicts the leases.

    Args:
        facts: all pools, slots and live leases; `held` of every pool that has a quota.
    """
    found: list[str] = []
    live = [lease for lease in facts.leases.values() if lease.state != "ended"]
    granted = [lease for lease in live if lease.state == "granted"]
    preemptible = [lease for lease in granted if lease.preemptible is not None]
    waiting = [lease for lease in live if lease.state == "waiting"]
    for name, pool in facts.pools.items():
        line = [lease for lease in waiting if name in _lines(lease)]
        sums = {
            "occupied": (pool.occupied, _units(granted, name)),
            "yields": (pool.yields, _units(preemptible, name)),
            "waiting": (pool.waiting, len(line)),
            "gangs": (pool.gangs, sum(len(_lines(lease)) > 1 for lease in line)),
        }
        for what, stored, right in (
            ("awaited", pool.awaited, _awaited(line, pool)),
            ("sought", pool.sought, _sought(line, pool)),
        ):
            if stored != right:
                found.append(f"pool {name}: {what} is {stored}, and should be {right}")
        for what, (stored, right) in sums.items():
            if stored != right:
                found.append(f"pool {name}: {what} is {stored}, and should be {right}")
        if pool.spec.fair_share is not None and pool.sharing is not None:
            counted = pool.sharing.others + sum(one.held for one in pool.sharing.sharers.values())
            if counted != pool.occupied:
                found.append(f"pool {name}: all sharers hold {counted}, and not {pool.occupied}")
        if pool.spec.quota is not None:
            found += _held_differs(facts, name, granted)
    for lease in live:
        missing = [need.pool for need in lease.needs if need.pool not in facts.pools]
        found += [f"lease {lease.id}: pool {name} does not exist" for name in missing]
    return found + _slots_differ(facts, granted)


def _held_differs(facts: Facts, pool: str, granted: list[Lease]) -> list[str]:
    owners = {owner for name, owner in facts.held if name == pool}
    owners |= {lease.owner for lease in granted if pool in units_by_pool(lease.needs)}
    found = []
    for owner in sorted(owners):
        stored = facts.held.get((pool, owner), 0)
        right = _units([lease for lease in granted if lease.owner == owner], pool)
        if stored != right:
            found.append(f"pool {pool}: {owner} holds {stored}, and should hold {right}")
    return found


def _slots_differ(facts: Facts, granted: list[Lease]) -> list[str]:
    found = []
    claimed = {
        (pool, slot): lease
        for lease in granted
        for pool, slots in lease.slots.items()
        for slot in slots
    }
    for slot in facts.slots_of(facts.slots):
        lease = claimed.pop((slot.pool, slot.name), None)
        expected = None if lease is None else lease.id
        if slot.lease != expected or bool(slot.owner) != (expected is not None):
            found.append(
                f"slot {slot.pool}/{slot.name}: held by {slot.lease}, and should be by {expected}"
            )
    for (pool, name), lease in claimed.items():
        found.append(f"lease {lease.id}: holds slot {pool}/{name}, which does not exist")
    for lease in granted:
        for pool, units in units_by_pool(lease.needs).items():
            slotted = pool in facts.pools and facts.pools[pool].spec.limit is None
            if slotted and len(lease.slots.get(pool, ())) != units:
                found.append(
                    f"lease {lease.id}: has {len(lease.slots.get(pool, ()))} slots of {pool},"
                    f" and should have {units}"
                )
    return found


def _asked(lease: Lease) -> tuple[tuple[Need, ...], ...]:
    """Return the alternatives of a ticket; its needs are the only one of most."""
    return lease.alternatives or (lease.needs,)


def _lines(lease: Lease) -> set[str]:
    """Return the pools in whose lines a ticket stands."""
    return {need.pool for needs in _asked(lease) for need in needs}


def _awaited(line: list[Lease], pool: Pool) -> dict[str, int]:
    return _wanted(line, pool, lambda need: "" if need.wanted else need.state)


def _sought(line: list[Lease], pool: Pool) -> dict[str, int]:
    return _wanted(line, pool, lambda need: need.wanted)


def _wanted(line: list[Lease], pool: Pool, word: Callable[[Need], str]) -> dict[str, int]:
    """Count the slots that a line waits for: of each ticket the least that an alternative needs."""
    found: dict[str, int] = {}
    for lease in line if pool.spec.limit is None else []:
        own = [need for needs in _asked(lease) for need in needs if need.pool == pool.name]
        for name in {word(need) for need in own} - {""}:
            least = min(need.units for need in own if word(need) == name)
            found[name] = found.get(name, 0) + least
    return found


def _units(leases: list[Lease], pool: str) -> int:
    return sum(need.units for lease in leases for need in lease.needs if need.pool == pool)
