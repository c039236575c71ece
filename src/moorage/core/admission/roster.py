"""Which slots there shall be: what a Boskos configuration says, and what follows from it.

Source of the rules: the behaviour of Boskos. Slots of the configuration are made, others go once
nobody holds them, and what is there keeps its state, owner and user data. Growing pools (dynamic
resource types) keep between `least` and `most` slots; what is too many, or too old, is first marked
`toBeDeleted`, and taken away when somebody has said that it is a tombstone.
"""

from collections.abc import Callable

from msgspec import Struct, structs

from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import (
    DAY,
    FREE,
    SECOND,
    Growth,
    Pool,
    PoolSpec,
    Slot,
    pacing_default,
)
from moorage.core.admission.units import lacking, limit_of
from moorage.core.clock import Instant

TO_BE_DELETED = "toBeDeleted"
TOMBSTONE = "tombstone"

SPEC = PoolSpec(limit=None, ttl=60 * SECOND, ttl_max=DAY)
"""Of a pool that a configuration makes; operators may then change it."""

Fresh = Callable[[], str]
"""Hands out names for slots that a pool makes by itself."""


class Entry(Struct, frozen=True):
    """One resource type of a configuration."""

    pool: str
    state: str = FREE
    names: tuple[str, ...] = ()
    growth: Growth | None = None
    """Of a dynamic type; then there are no names."""


class Roster(Struct, frozen=True):
    """All resource types of a configuration, in its order."""

    entries: tuple[Entry, ...] = ()

    @property
    def named(self) -> dict[str, Entry]:
        """The entry of every name that it tells."""
        return {name: entry for entry in self.entries for name in entry.names}

    @property
    def pools(self) -> set[str]:
        """The names of all its types."""
        return {entry.pool for entry in self.entries}


def sync(
    facts: Facts, now: Instant, wall: Instant, roster: Roster, fresh: Fresh, *, strict: bool = False
) -> tuple[Changes, tuple[str, ...]]:
    """Let pools and slots be as a roster says.

    The answer are sentences on what cannot be done yet.

    Args:
        facts: with every pool of the roster and every pool that has slots or grows.
        now: service time, for what is told of pools.
        wall: the time that slots are told in.
        roster: what there shall be.
        fresh: names for slots that pools make by themselves.
        strict: make none for those who wait; Boskos makes them for new requests only.
    """
    sync_ = _Sync(facts, now, wall, roster)
    sync_.pools()
    sync_.growths()
    sync_.named()
    for pool in [pool for pool in sync_.pools_now.values() if pool.growth is not None]:
        sync_.grow(pool, fresh)
        if not strict:
            sync_.serve(pool, fresh)
    sync_.pace()
    sync_.empty()
    return sync_.changes(), tuple(sync_.problems)


class _Sync:
    """The pools and slots as they become; what differs at the end are the changes."""

    def __init__(self, facts: Facts, now: Instant, wall: Instant, roster: Roster) -> None:
        self.facts = facts
        self.now = now
        self.wall = wall
        self.roster = roster
        self.problems: list[str] = []
        self.pools_now = {
            name: pool for name, pool in facts.pools.items() if pool.spec.limit is None
        }
        self.slots_now = {
            (slot.pool, slot.name): slot for slot in facts.slots_of(list(self.pools_now))
        }

    def pools(self) -> None:
        """Make the pools that there are none of."""
        for entry in self.roster.entries:
            if entry.pool in self.pools_now:
                continue
            if entry.pool in self.facts.pools:
                self.problems.append(f"{entry.pool} is a pool with a limit and has no names")
                continue
            self.pools_now[entry.pool] = pool_new(entry.pool, self.now)

    def growths(self) -> None:
        """Let each pool grow as it shall; one that is no more said to grow shall lose its slots."""
        wanted = {entry.pool: entry.growth for entry in self.roster.entries}
        for name, pool in self.pools_now.items():
            growth = wanted.get(name)
            if growth is None and pool.growth is not None:
                growth = structs.replace(pool.growth, least=0, most=0)
            self.pools_now[name] = structs.replace(pool, growth=growth)

    def named(self) -> None:
        """Make the slots that have names, and let others go that nobody holds."""
        wanted = self.roster.named
        there: dict[str, Slot] = {}
        for key, slot in list(self.slots_now.items()):
            entry = wanted.get(slot.name)
            if entry is None and self.pools_now[slot.pool].growth is not None:
                continue
            if (entry is None or entry.pool != slot.pool) and not slot.owner:
                del self.slots_now[key]
            elif entry is not None:
                there[slot.name] = slot
        for name, entry in wanted.items():
            if name not in there:
                self.add(entry.pool, name, entry.state)
            elif there[name].pool != entry.pool:
                self.problems.append(
                    f"{name} is still held in {there[name].pool}; it moves to {entry.pool} after"
                )

    def add(self, pool: str, name: str, state: str, dynamic: bool = False) -> None:
        """Make a slot, if its pool can have any."""
        if pool in self.pools_now:
            self.slots_now[pool, name] = slot_new(pool, name, state, self.wall, dynamic)

    def grow(self, pool: Pool, fresh: Fresh) -> None:
        """Let a growing pool have as many slots as it shall."""
        growth, named = pool.growth, self.roster.named
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
        """Make what those lack who wait: a slot was buried, or there may be more than before."""
        for _ in range(lacking(pool, self._slots(pool.name))):
            assert pool.growth is not None  # else nothing is lacking
            self.add(pool.name, fresh(), pool.growth.state, dynamic=True)

    def pace(self) -> None:
        """Let a pacing that followed from hold and units go on to follow, as slots come and go."""
        for name, pool in self.pools_now.items():
            before, spec, growth = self.facts.pools.get(name), pool.spec, pool.growth
            had = 0 if before is None else limit_of(self.facts, before)
            has = max(len(self._slots(name)), 0 if growth is None else growth.most)
            follows = spec.pacing == pacing_default(had, spec.hold)
            if had and has and follows and spec.pacing is not None:
                spec = structs.replace(spec, pacing=pacing_default(has, spec.hold))
                self.pools_now[name] = structs.replace(pool, spec=spec)

    def _slots(self, pool: str) -> list[Slot]:
        return [slot for slot in self.slots_now.values() if slot.pool == pool]

    def empty(self) -> None:
        """Take away pools that the roster does not know and that nobody has anything to do with."""
        known = self.roster.pools
        used = {pool for pool, _ in self.slots_now}
        for name, pool in list(self.pools_now.items()):
            idle = not (pool.occupied or pool.waiting or pool.growth)
            if name not in known and name not in used and idle:
                del self.pools_now[name]

    def changes(self) -> Changes:
        """Return what has become different."""
        changes = Changes()
        before = {name: pool for name, pool in self.facts.pools.items() if pool.spec.limit is None}
        for name in before.keys() | self.pools_now.keys():
            pool = self.pools_now.get(name)
            if pool != before.get(name):
                changes.pools[name] = pool and structs.replace(pool, updated_at=self.now)
        slots = {(slot.pool, slot.name): slot for slot in self.facts.slots_of(list(before))}
        for key in sorted(slots.keys() | self.slots_now.keys()):
            if self.slots_now.get(key) != slots.get(key):
                changes.slots[key] = self.slots_now.get(key)
        return changes


def _name(slot: Slot) -> str:
    return slot.name


def pool_new(name: str, now: Instant) -> Pool:
    """Return a pool that is to have named slots, as yet without any."""
    return Pool(
        name=name,
        spec=SPEC,
        paused=False,
        generation=1,
        occupied=0,
        waiting=0,
        gangs=0,
        resting=(),
        paced_at=Instant(0),
        wake_at=None,
        created_at=now,
        updated_at=now,
    )


def slot_new(pool: str, name: str, state: str, wall: Instant, dynamic: bool = False) -> Slot:
    """Return a slot that nobody has held yet."""
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
