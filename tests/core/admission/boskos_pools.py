"""Builders for facts with named slots, and a driver of Boskos' calls, for the tests of Boskos."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from moorage.core.admission.admit import admit
from moorage.core.admission.compat import boskos, boskos_strict, slots_by_name
from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.facts import Changes, Facts, Immediate
from moorage.core.admission.model import Growth, Lease, Need, Slot
from moorage.core.admission.pools import new_pool
from moorage.core.admission.slot_config import SPEC, ResourceType
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import Moment

START = Instant(1_000_000_000)
"""When all slots were last updated before a test begins."""

NOW = Instant(2_000_000_000)


def slot(
    name: str, pool: str, state: str = "free", owner: str = "", expires: Instant | None = None
) -> Slot:
    """Return a slot; if it has an owner, its lease is named after the slot."""
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
    """Return the growth of a dynamic type."""
    return Growth(least=least, most=most, state=state, lifespan=lifespan)


def static(pool: str, *names: str, state: str = "free") -> ResourceType:
    """Return the configuration of a type with static names."""
    return ResourceType(pool, state, names)


def dynamic(pool: str, least: int, most: int, state: str = "free") -> ResourceType:
    """Return the configuration of a dynamic type, which has no names."""
    return ResourceType(pool, state, (), grows(least, most, state))


def facts_with(*slots: Slot, **growths: Growth) -> Facts:
    """Return facts with these slots, their pools and leases, and growing pools."""
    facts = Facts()
    for name in sorted({slot.pool for slot in slots} | set(growths)):
        held = sum(slot.pool == name and bool(slot.owner) for slot in slots)
        pool = new_pool(name, SPEC, START)
        facts.pools[name] = structs.replace(pool, occupied=held, growth=growths.get(name))
        facts.slots[name] = {}
    for one in slots:
        facts.slots[one.pool][one.name] = one
        if one.lease is not None:
            facts.leases[one.lease] = lease_on(one)
            facts.asked[f"boskos:{one.owner}", one.lease] = one.lease
    return facts


def lease_on(one: Slot) -> Lease:
    """Return the lease of an owned slot."""
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


def new_names() -> Callable[[], str]:
    """Return a function that returns new-1, new-2 and so on."""

    def numbered() -> Iterator[str]:
        n = 0
        while True:
            n += 1
            yield f"new-{n}"

    return numbered().__next__


def slot_rows(facts: Facts) -> list[tuple[str, str, str, str, bool]]:
    """Return every slot, by name, as (name, pool, state, owner, was it updated at `NOW`)."""
    return sorted(
        (slot.name, slot.pool, slot.state, slot.owner, slot.updated_at == NOW)
        for slot in facts.slots_of(list(facts.slots))
    )


def growths_of(facts: Facts) -> dict[str, tuple[int, int]]:
    """Return the least and the most slots that every growing pool shall have."""
    return {
        name: (pool.growth.least, pool.growth.most)
        for name, pool in facts.pools.items()
        if pool.growth is not None
    }


class Ranch:
    """Executes Boskos' calls on facts, each in a separate batch; named after the type in Boskos."""

    def __init__(self, facts: Facts, *, strict: bool) -> None:
        self.facts = facts
        self.strict = strict
        self.now = NOW
        self.calls = 0

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.now = Instant(self.now + round(seconds * SECOND))

    def _next(self) -> int:
        self.calls += 1
        return self.calls

    @property
    def moment(self) -> Moment:
        """The present time, without any outage before."""
        return Moment(self.now, self.now)

    def acquire(
        self,
        request_id: str = "",
        owner: str = "me",
        pool: str = "t",
        state: str = "free",
        dest: str = "leased",
    ) -> str | None:
        """Poll once; return the name of the slot, or None if there is none yet."""
        n = self._next()
        wish = AcquireRequest(
            pool, state, dest, owner, request_id, LeaseId(f"lease-{n}"), f"made-{n}"
        )
        at_once: list[Immediate] = []
        ticket: LeaseId | None = wish.fresh
        if self.strict:
            changes, ticket = boskos_strict.acquire_strict(self.facts, self.moment, self.now, wish)
            self.facts.apply(changes)
        elif request_id:
            changes, ticket = boskos.acquire_safe(self.facts, self.moment, self.now, wish)
            self.facts.apply(changes)
        else:
            at_once = [boskos.now_or_never(self.facts, self.moment, wish)]
        polled = frozenset() if self.strict or ticket is None else frozenset({ticket})
        self._admit(polled, at_once)
        try:
            acquired = boskos_strict.acquired_strict if self.strict else boskos.acquired
            return acquired(self.facts, wish, ticket).slot.name
        except Error as error:
            if error.code is not Code.NO_CAPACITY:
                raise
            return None

    def take(self, *names: str, state: str = "free") -> list[str] | None:
        """Take slots by name; return None if strict and not all were available."""
        wish = AcquireRequest("", state, "busy", "me", "", LeaseId(""), "")
        ids = [LeaseId(f"lease-{self._next()}") for _ in names]
        if self.strict:
            changes, taken = boskos_strict.take_named(
                self.facts, self.moment, self.now, wish, names, ids
            )
            self.facts.apply(changes)
            return None if taken is None else [name for _, name in taken]
        wanted = boskos.named_or_never(self.facts, self.moment, wish, names, ids)
        self._admit(at_once=[wanted])
        there = [ticket.id in self.facts.leases for ticket in wanted.tickets]
        assert all(there) or not any(there)
        if not all(there):
            raise boskos.nothing(state)
        return [*wanted.names]

    def release(self, name: str, dest: str = "free", owner: str = "me") -> None:
        """Release a slot."""
        self.apply(slots_by_name.release(self.facts, self.moment, self.now, name, dest, owner))

    def apply(self, changes: Changes) -> None:
        """Apply changes, then grant."""
        self.facts.apply(changes)
        self._admit()

    def _admit(
        self, polled: frozenset[LeaseId] = frozenset(), at_once: Sequence[Immediate] = ()
    ) -> None:
        made = admit(self.facts, self.moment, self.now, polled=polled, at_once=at_once)
        self.facts.apply(made)

    def slot(self, name: str) -> Slot:
        """Return the slot with this name."""
        found = slots_by_name.slot_named(self.facts, name)
        assert found is not None
        return found

    def check(self) -> None:
        """Check that owned slots are those of granted leases, and that the sums are right."""
        granted = [one for one in self.facts.leases.values() if one.state == "granted"]
        held = {
            (pool, name) for one in granted for pool, names in one.slots.items() for name in names
        }
        owned = {(one.pool, one.name) for one in self.facts.slots_of(self.facts.slots) if one.owner}
        assert owned == held
        for name, pool in self.facts.pools.items():
            units = [
                (lease.state, need.units)
                for lease in self.facts.leases.values()
                for need in lease.needs
                if need.pool == name
            ]
            assert pool.occupied == sum(n for state, n in units if state == "granted")
            waiting = [one for one in self.facts.leases.values() if one.state == "waiting"]
            assert pool.waiting == sum(one.needs[0].pool == name for one in waiting)
