"""Makes slots match a Boskos configuration.

Source of the rules: the behaviour of Boskos. Configured slots are made, others are removed once
they are free, and existing ones keep their state, owner and user data. Growing pools (dynamic
resource types) have between `least` and `most` slots; surplus or expired ones are first marked
`toBeDeleted`, and removed when a client has set their state to `tombstone`.
"""

from collections.abc import Callable

from msgspec import Struct, structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import (
    FREE,
    Growth,
    Pool,
    PoolSpec,
    Slot,
)
from moorage.core.admission.pacing import is_default, pacing_default
from moorage.core.admission.pools import new_pool
from moorage.core.admission.slots import slot_new
from moorage.core.admission.units import lacking, limit_of, units_of
from moorage.core.clock import SECOND, Instant
from moorage.wire.defaults import PROXY_TTL_SECONDS, TTL_SECONDS, TTL_SECONDS_MAX

TO_BE_DELETED = "toBeDeleted"
TOMBSTONE = "tombstone"

SPEC = PoolSpec(
    limit=None,
    ttl=round(TTL_SECONDS * SECOND),
    ttl_max=round(TTL_SECONDS_MAX * SECOND),
    proxy_ttl=round(PROXY_TTL_SECONDS * SECOND),
)
"""Of a pool made from a configuration; operators may change it later."""

Fresh = Callable[[], str]
"""Returns new names for slots that a pool makes by itself."""


class ResourceType(Struct, frozen=True):
    """One resource type of a configuration."""

    pool: str
    state: str = FREE
    names: tuple[str, ...] = ()
    growth: Growth | None = None
    """Of a dynamic type, which has no names."""


class SlotConfig(Struct, frozen=True):
    """All resource types of a configuration, in its order."""

    entries: tuple[ResourceType, ...] = ()

    @property
    def named(self) -> dict[str, ResourceType]:
        """The entry of every configured name."""
        return {name: entry for entry in self.entries for name in entry.names}

    @property
    def pools(self) -> set[str]:
        """The names of all types."""
        return {entry.pool for entry in self.entries}


def sync(
    facts: Facts,
    wall: Instant,
    config: SlotConfig,
    fresh: Fresh,
    *,
    for_tickets: bool = True,
) -> tuple[Changes, tuple[str, ...]]:
    """Make pools and slots match a configuration; return also messages on what is not possible yet.

    Args:
        facts: with every pool of the configuration and every pool that has slots or grows.
        wall: wall-clock time, stored in pools and slots.
        config: the wanted slots.
        fresh: names for slots that pools make by themselves.
        for_tickets: make some for waiting tickets, too; Boskos makes them for new requests only.
    """
    sync_ = _Sync(facts, wall, config)
    sync_.pools()
    sync_.growths()
    sync_.named()
    for pool in [pool for pool in sync_.pools_now.values() if pool.growth is not None]:
        sync_.grow(pool, fresh)
        if for_tickets:
            sync_.serve(pool, fresh)
    sync_.pace()
    sync_.empty()
    return sync_.changes(), tuple(sync_.problems)


class _Sync:
    """The new pools and slots; the changes are their differences from the facts."""

    def __init__(self, facts: Facts, wall: Instant, config: SlotConfig) -> None:
        self.facts = facts
        self.wall = wall
        self.config = config
        self.problems: list[str] = []
        self.pools_now = {name: pool for name, pool in facts.pools.items() if is_configured(pool)}
        self.slots_now = {
            (slot.pool, slot.name): slot for slot in facts.slots_of(list(self.pools_now))
        }

    def pools(self) -> None:
        """Make the missing pools."""
        for entry in self.config.entries:
            if entry.pool in self.pools_now:
                continue
            known = self.facts.pools.get(entry.pool)
            if known is not None:
                has = "a limit" if known.spec.limit is not None else "slots of the native API"
                self.problems.append(f"{entry.pool} is a pool with {has} and cannot have names")
                continue
            self.pools_now[entry.pool] = new_pool(entry.pool, SPEC, self.wall)

    def growths(self) -> None:
        """Set each pool's growth; one that is no longer configured to grow loses its slots."""
        wanted = {entry.pool: entry.growth for entry in self.config.entries}
        for name, pool in self.pools_now.items():
            growth = wanted.get(name)
            if growth is None and pool.growth is not None:
                growth = structs.replace(pool.growth, least=0, most=0)
            self.pools_now[name] = structs.replace(pool, growth=growth)

    def named(self) -> None:
        """Make the slots that have names, and remove other free ones."""
        wanted = self.config.named
        there: dict[str, Slot] = {}
        for key, slot in list(self.slots_now.items()):
            entry = wanted.get(slot.name)
            if entry is None and self.pools_now[slot.pool].growth is not None:
                continue
            if (entry is None or entry.pool != slot.pool) and not slot.owner:
                del self.slots_now[key]
            elif entry is not None:
                there[slot.name] = slot
        others = {
            slot.name: pool.name
            for pool in self.facts.pools.values()
            if pool.spec.native_slots
            for slot in self.facts.slots_of([pool.name])
        }
        for name, entry in wanted.items():
            if name in others:
                self.problems.append(f"{name} is a slot of {others[name]}, made by the native API")
            elif name not in there:
                self.add(entry.pool, name, entry.state)
            elif there[name].pool != entry.pool:
                self.problems.append(
                    f"{name} is still held in {there[name].pool}; it moves to {entry.pool} later"
                )

    def add(self, pool: str, name: str, state: str, dynamic: bool = False) -> None:
        """Make a slot, if its pool can have slots."""
        if pool in self.pools_now:
            self.slots_now[pool, name] = slot_new(pool, name, state, self.wall, dynamic)

    def grow(self, pool: Pool, fresh: Fresh) -> None:
        """Bring a growing pool's number of slots within its bounds."""
        growth, named = pool.growth, self.config.named
        assert growth is not None  # the caller's choice
        own = [slot for slot in self._slots(pool.name) if slot.name not in named]
        idle = [slot for slot in own if not slot.owner]
        buried = [slot for slot in idle if slot.state == TOMBSTONE]
        leaving = [slot for slot in idle if slot.state == TO_BE_DELETED]
        usable = [slot for slot in idle if slot.state not in (TOMBSTONE, TO_BE_DELETED)]
        old = [
            slot for slot in usable if slot.expires_at is not None and slot.expires_at < self.wall
        ]
        active = len(own) - len(buried)
        while active < growth.least:
            self.add(pool.name, fresh(), growth.state, dynamic=True)
            active += 1
        spare = sorted((slot for slot in usable if slot not in old), key=_name, reverse=True)
        surplus = max(0, active - len(leaving) - len(old) - growth.most)
        for slot in buried:
            del self.slots_now[slot.pool, slot.name]
        for slot in [*old, *spare[:surplus]]:
            self.slots_now[slot.pool, slot.name] = structs.replace(
                slot, state=TO_BE_DELETED, updated_at=self.wall
            )
        if growth.most == 0 and len(own) == len(buried):
            self.pools_now[pool.name] = structs.replace(pool, growth=None)

    def serve(self, pool: Pool, fresh: Fresh) -> None:
        """Make slots for waiting tickets: one was removed, or the most were raised."""
        for _ in range(lacking(pool, self._slots(pool.name))):
            assert pool.growth is not None  # else nothing is lacking
            self.add(pool.name, fresh(), pool.growth.state, dynamic=True)

    def pace(self) -> None:
        """Adapt default pacings to the new numbers of slots."""
        for name, pool in self.pools_now.items():
            before, spec = self.facts.pools.get(name), pool.spec
            had = 0 if before is None else limit_of(self.facts, before)
            has = units_of(pool, len(self._slots(name)))
            if had and has and spec.hold and is_default(spec.pacing, had, spec.hold):
                spec = structs.replace(spec, pacing=pacing_default(has, spec.hold))
                self.pools_now[name] = structs.replace(pool, spec=spec)

    def _slots(self, pool: str) -> list[Slot]:
        return [slot for slot in self.slots_now.values() if slot.pool == pool]

    def empty(self) -> None:
        """Remove unused pools that are not in the configuration."""
        known = self.config.pools
        used = {pool for pool, _ in self.slots_now}
        for name, pool in list(self.pools_now.items()):
            idle = not (pool.occupied or pool.waiting or pool.growth)
            if name not in known and name not in used and idle:
                del self.pools_now[name]

    def changes(self) -> Changes:
        """Return the differences from the facts."""
        changes = Changes()
        before = {name: pool for name, pool in self.facts.pools.items() if is_configured(pool)}
        for name in before.keys() | self.pools_now.keys():
            pool = self.pools_now.get(name)
            if pool != before.get(name):
                changes.pools[name] = pool and structs.replace(pool, updated_at=self.wall)
        slots = {(slot.pool, slot.name): slot for slot in self.facts.slots_of(list(before))}
        for key in sorted(slots.keys() | self.slots_now.keys()):
            if self.slots_now.get(key) != slots.get(key):
                changes.slots[key] = self.slots_now.get(key)
        return changes


def is_configured(pool: Pool) -> bool:
    """Do a pool's slots follow the configuration?"""
    return pool.spec.limit is None and not pool.spec.native_slots


def _name(slot: Slot) -> str:
    return slot.name
