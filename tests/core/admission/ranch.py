"""Pools with named slots, written in one line each, as the tests of resources need them."""

from collections.abc import Callable, Iterator

from msgspec import structs

from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Growth, Lease, Need, Slot
from moorage.core.admission.roster import Entry, pool_new
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId

START = Instant(1_000_000_000)
"""When all slots were last touched before a test begins."""

NOW = Instant(2_000_000_000)


def slot(
    name: str, pool: str, state: str = "free", owner: str = "", expires: Instant | None = None
) -> Slot:
    """A slot; whoever owns one holds it by a lease named after it."""
    return Slot(
        pool=pool,
        name=name,
        state=state,
        owner=owner,
        lease=LeaseId(f"lease-of-{name}") if owner else None,
        user_data={},
        updated_at=START,
        expires_at=expires,
    )


def grows(least: int, most: int, state: str = "free", lifespan: int | None = None) -> Growth:
    """What a dynamic type says."""
    return Growth(least=least, most=most, state=state, lifespan=lifespan)


def static(pool: str, *names: str, state: str = "free") -> Entry:
    """A type with names."""
    return Entry(pool, state, names)


def dynamic(pool: str, least: int, most: int, state: str = "free") -> Entry:
    """A type without names."""
    return Entry(pool, state, (), grows(least, most, state))


def ranch(*slots: Slot, **growths: Growth) -> Facts:
    """Facts with these slots, their pools, the leases of their owners, and growing pools."""
    facts = Facts()
    for name in sorted({slot.pool for slot in slots} | set(growths)):
        held = sum(slot.pool == name and bool(slot.owner) for slot in slots)
        pool = pool_new(name, START)
        facts.pools[name] = structs.replace(pool, occupied=held, growth=growths.get(name))
        facts.slots[name] = {}
    for one in slots:
        facts.slots[one.pool][one.name] = one
        if one.lease is not None:
            facts.leases[one.lease] = lease_on(one)
            facts.asked[f"boskos:{one.owner}", one.lease] = one.lease
    return facts


def lease_on(one: Slot) -> Lease:
    """The lease by which a slot is held."""
    assert one.lease is not None
    return Lease(
        id=one.lease,
        owner=f"boskos:{one.owner}",
        key=one.lease,
        digest="",
        needs=(Need(one.pool, 1, "free", one.state),),
        state="granted",
        priority=0,
        arrival=0,
        ttl=None,
        hold=None,
        patience=30_000_000,
        labels={},
        forced=False,
        pull=True,
        keep=True,
        asked_at=START,
        heard_until=None,
        granted_at=START,
        slots={one.pool: (one.name,)},
    )


def names() -> Callable[[], str]:
    """Hand out new-1, new-2 and so on."""

    def numbered() -> Iterator[str]:
        n = 0
        while True:
            n += 1
            yield f"new-{n}"

    return numbered().__next__


def shown(facts: Facts) -> list[tuple[str, str, str, str, bool]]:
    """Every slot as (name, pool, state, owner, was it touched now?), by name."""
    return sorted(
        (slot.name, slot.pool, slot.state, slot.owner, slot.updated_at == NOW)
        for slot in facts.slots_of(list(facts.slots))
    )


def growths_of(facts: Facts) -> dict[str, tuple[int, int]]:
    """Between how many and how many slots every growing pool shall have."""
    return {
        name: (pool.growth.least, pool.growth.most)
        for name, pool in facts.pools.items()
        if pool.growth is not None
    }
