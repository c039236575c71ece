"""The store of the simulator: dictionaries that commit as a whole, and load only what is named.

It loads what `Keys` name, lines a few tickets at a time, so a decision that reads something that
was not loaded fails here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import structs

from moorage.core.admission.booking_model import Booking, of_pool
from moorage.core.admission.facts import Changes, Facts, Keys, Line
from moorage.core.admission.model import Lease, Pool, Slot, Template, due_of, first_end
from moorage.core.admission.sharing.preemption import yielding
from moorage.core.admission.superseding import group_key
from moorage.core.clock import Instant
from moorage.core.ids import BookingId, LeaseId
from moorage.core.service_time import Timeline

DUE_MAX = 100


def rank(lease: Lease) -> tuple[int, int, int]:
    """Return the order of a line: higher priority first, then lower place, and earlier arrival."""
    return (-lease.priority, -lease.arrival if lease.newest else lease.place, lease.arrival)


@dataclass
class Memory:
    """All rows of admission, as committed; and a ledger of one provider of one class."""

    page: int = 2
    """Tickets of a line that are loaded at once."""
    timeline: Timeline = field(default_factory=Timeline)
    arrivals: int = 0
    pools: dict[str, Pool] = field(default_factory=dict)
    templates: dict[str, Template] = field(default_factory=dict)
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    """Those that live; the ended ones are apart."""
    ended: dict[LeaseId, Lease] = field(default_factory=dict)
    asked: dict[tuple[str, str], LeaseId] = field(default_factory=dict)
    slots: dict[str, dict[str, Slot]] = field(default_factory=dict)
    bookings: dict[BookingId, Booking] = field(default_factory=dict)
    lines: dict[str, list[LeaseId]] = field(default_factory=dict)
    due: dict[LeaseId, Instant] = field(default_factory=dict)
    """When the sweep is to look at a lease, as of when that was last written."""
    epoch: int = 1
    revision: int = 0
    capacity: int = 0
    """Of the ledger."""
    capacity_made: bool = False
    """Whether there is a ledger with a provider."""

    def find(self, lease: LeaseId) -> Lease | None:
        """Return a lease, ended or not."""
        return self.leases.get(lease) or self.ended.get(lease)

    def taken(self) -> int:
        """Return what leases have allocated in the ledger."""
        return sum(
            int(lease.allocations)
            for lease in self.leases.values()
            if lease.allocations is not None and lease.state == "granted"
        )

    def wanting(self) -> frozenset[str]:
        """Return the pools with tickets that also need the ledger."""
        tickets = [lease for lease in self.leases.values() if lease.state == "waiting"]
        return frozenset(need.pool for t in tickets if t.allocations for need in t.needs)

    def load(self, keys: Keys) -> Facts:
        """Return what these keys name."""
        leases = {key: lease for key in keys.leases if (lease := self.find(key)) is not None}
        asked = {key: self.asked[key] for key in keys.asked if key in self.asked}
        for key in asked.values():
            leases[key] = self._found(key)
        for lease in self.leases.values():
            if lease.group and group_key(lease.owner, lease.group) in keys.groups:
                leases[lease.id] = lease
        names = keys.pools | keys.ends | keys.calendars | self._named(keys.bookings)
        due = self._due(keys.due)
        for key in due:
            leases[key] = self.leases[key]
        names |= {
            need.pool
            for lease in leases.values()
            for needs in (lease.needs, *lease.alternatives)
            for need in needs
        }
        names |= self._woken(keys.due)
        pools = {name: self.pools[name] for name in names if name in self.pools}
        if any(pool.gangs for pool in pools.values()):
            pools |= {name: pool for name, pool in self.pools.items() if pool.gangs}
        cohorts = {pool.spec.cohort for pool in pools.values()} | keys.cohorts
        pools |= {n: p for n, p in self.pools.items() if p.spec.cohort in cohorts - {None}}
        for lease in self.leases.values():
            if any(need.pool in keys.ends for need in lease.needs):
                leases[lease.id] = lease
        leases |= {key: lease for key in keys.heard if (lease := self.find(key)) is not None}
        facts = Facts(
            timeline=self.timeline,
            arrivals=self.arrivals,
            pools=pools,
            leases=leases,
            asked=asked | {(lease.owner, lease.key): key for key, lease in leases.items()},
            slots={name: dict(self.slots.get(name, {})) for name in pools},
            due=due,
        )
        if keys.templates or not keys.makable <= pools.keys():
            made = [one.on_demand.template for one in self.pools.values() if one.on_demand]
            facts.templates = dict(self.templates)
            facts.made = {name: made.count(name) for name in self.templates}
        facts.held = self._held(pools, keys.quotas)
        self._calendars(facts, keys, facts.pools)
        for lease in keys.heads & leases.keys():
            for need in leases[lease].needs:
                if line := self.lines.get(need.pool):
                    facts.heads[need.pool] = rank(self.leases[line[0]])
        return facts

    def load_more(self, facts: Facts, wanted: dict[str, int]) -> None:
        """Load the next page of these lines, and what may be asked to stop for their tickets."""
        yields = {one for name in wanted for one in yielding(facts, facts.pools[name])}
        for lease in self.leases.values():
            asked = lease.preemptible is not None or lease.stop_until is not None
            if asked and lease.state == "granted" and any(n.pool in yields for n in lease.needs):
                facts.leases.setdefault(lease.id, lease)
                self._load_pools(facts, {need.pool for need in lease.needs})
        for name, count in wanted.items():
            line = facts.lines.setdefault(name, Line())
            stored = self.lines.get(name, [])
            reach = len(line.tickets) + max(self.page, min(count, 2 * self.page))
            for key in stored[len(line.tickets) : reach]:
                line.tickets.append(key)
                line.end = rank(self.leases[key])
                if key not in facts.leases and key in self.leases:
                    facts.leases.setdefault(key, self.leases[key])
            line.whole = len(line.tickets) >= len(stored)

    def save(self, changes: Changes) -> None:
        """Make the changes of a batch the truth."""
        if changes.arrivals is not None:
            self.arrivals = changes.arrivals
        for name, template in changes.templates.items():
            assert template is not None, "nobody takes templates away here"
            self.templates[name] = template
        for name, pool in changes.pools.items():
            if pool is None:
                del self.pools[name]
                self.slots.pop(name, None)
            else:
                self.pools[name] = pool
        for key, lease in changes.leases.items():
            assert lease is not None, "leases are forgotten by a chore alone"
            self.asked[lease.owner, lease.key] = key
            where, other = self.leases, self.ended
            if lease.state == "ended":
                where, other = other, where
            other.pop(key, None)
            where[key] = lease
        for (pool_name, name), slot in changes.slots.items():
            assert slot is not None, "nobody takes slots away here"
            self.slots.setdefault(pool_name, {})[name] = slot
        self.bookings.update(changes.bookings)
        for key, until in changes.heard.items():
            self.leases[key] = structs.replace(self.leases[key], heard_until=until)
        for key in {*changes.leases, *changes.heard, *changes.postponed}:
            due = due_of(self.leases[key], self.timeline) if key in self.leases else None
            self.due.pop(key, None)
            if due is not None:
                self.due[key] = due
        if changes.is_published:
            self.revision += 1
            self._line_up()

    def next_due(self) -> Instant | None:
        """Return the service time at which time itself may change something."""
        wakes = [pool.wake_at for pool in self.pools.values() if pool.wake_at is not None]
        return min([*wakes, *self.due.values()], default=None)

    def _found(self, key: LeaseId) -> Lease:
        found = self.find(key)
        assert found is not None
        return found

    def _due(self, at: Instant | None) -> list[LeaseId]:
        if at is None:
            return []
        found = sorted((due, key) for key, due in self.due.items() if due <= at)
        return [key for _, key in found[:DUE_MAX]]

    def _woken(self, at: Instant | None) -> set[str]:
        if at is None:
            return set()
        return {
            name
            for name, pool in self.pools.items()
            if pool.wake_at is not None and pool.wake_at <= at
        }

    def _held(self, pools: dict[str, Pool], quotas: set[str]) -> dict[tuple[str, str], int]:
        held: dict[tuple[str, str], int] = {}
        for lease in self.leases.values():
            if lease.state != "granted":
                continue
            for need in lease.needs:
                pool = pools.get(need.pool)
                if pool is not None and (pool.spec.quota is not None or pool.name in quotas):
                    at = (need.pool, lease.owner)
                    held[at] = held.get(at, 0) + need.units
        return held

    def booked(self) -> set[str]:
        """Return the pools that a sweep maps bookings for after a jump of the clock."""
        live = [one for one in self.bookings.values() if one.cancelled_at is None]
        known = {name for name, pool in self.pools.items() if pool.booked_until is not None}
        return known | {need.pool for one in live for need in one.needs}

    def _named(self, keys: set[BookingId]) -> set[str]:
        """Return the pools of some bookings."""
        found = [self.bookings[key] for key in keys if key in self.bookings]
        return {need.pool for one in found if one.cancelled_at is None for need in one.needs}

    def _load_pools(self, facts: Facts, names: set[str]) -> None:
        """Load pools that are not loaded yet; nothing in this batch has changed these."""
        known = facts.pools.keys() | facts.gone
        fresh = {name: self.pools[name] for name in names - known}
        if any(pool.gangs for pool in fresh.values()):
            fresh |= {n: p for n, p in self.pools.items() if p.gangs and n not in known}
        facts.pools |= fresh
        facts.slots |= {name: dict(self.slots.get(name, {})) for name in fresh}
        facts.held |= self._held(fresh, set())
        self._calendars(facts, Keys(), fresh)

    def _calendars(self, facts: Facts, keys: Keys, pools: Mapping[str, Pool]) -> None:
        """Load what bookings need to know of those pools that have any, or are to have."""
        wall = self.timeline.alive_at - self.timeline.skew
        for key, one in self.bookings.items():
            if key in keys.bookings or (one.owner, one.key) in keys.booked:
                facts.bookings[key] = one
        for name, pool in pools.items():
            if pool.booked_until is None and name not in keys.calendars:
                continue
            held = facts.holding.setdefault(name, {})
            for lease in self.leases.values():
                ends = (first_end(lease.hold_until, lease.stop_until), lease.booking or "")
                for need in lease.needs if lease.state == "granted" else ():
                    if need.pool == name:
                        held[ends] = held.get(ends, 0) + need.units
            for one in of_pool(self.bookings.values(), name):
                if one.ends_at > wall:
                    facts.bookings.setdefault(one.id, one)
                    called = sum(
                        lease.booking == one.id and lease.state == "waiting"
                        for lease in self.leases.values()
                    )
                    facts.calls.setdefault(one.id, called)

    def _line_up(self) -> None:
        self.lines = {}
        for lease in sorted(self.leases.values(), key=rank):
            if lease.state == "waiting":
                for name in sorted({need.pool for need in lease.needs}):
                    self.lines.setdefault(name, []).append(lease.id)
