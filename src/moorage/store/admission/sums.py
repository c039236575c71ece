"""Adds up admission's leases one by one: the sums of pools, the holders of slots."""

from collections import Counter
from collections.abc import Iterable, Iterator

from moorage.core.admission.model import Lease, Pool, Slot
from moorage.core.admission.units import is_gang, units_by_pool
from moorage.core.ids import LeaseId
from moorage.core.service_time import Timeline


class Sums:
    """The sums over the leases added so far."""

    def __init__(self, timeline: Timeline, arrivals: int, names: set[str]) -> None:
        self.timeline = timeline
        self._arrivals = arrivals
        self.names = names
        """The names of all pools."""
        self.needs_met = 0
        """Rows in `lease_need` that were found by their leases."""
        self._occupied: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._gangs: Counter[str] = Counter()
        self._sought: dict[str, Counter[str]] = {}
        self._awaited: dict[str, Counter[str]] = {}
        self._held: dict[tuple[str, str], LeaseId] = {}
        self._arrived = 0

    def add(self, lease: Lease) -> Iterator[str]:
        """Count a lease; yield a message for each of its pools that does not exist."""
        self._arrived = max(self._arrived, lease.arrival)
        if lease.state == "ended":
            return
        for name, units in units_by_pool(lease.needs).items():
            if name not in self.names:
                yield f"lease {lease.id}: pool {name} does not exist"
            if lease.state == "granted":
                self._occupied[name] += units
            else:
                self._waiting[name] += 1
                self._gangs[name] += is_gang(lease.needs)
        if lease.state == "waiting":
            for need in lease.needs:
                if need.wanted:
                    self._sought.setdefault(need.pool, Counter())[need.wanted] += need.units
                else:
                    self._awaited.setdefault(need.pool, Counter())[need.state] += need.units
            return
        for pool, names in lease.slots.items():
            self._held.update(((pool, name), lease.id) for name in names)

    def sums(self, pools: Iterable[Pool]) -> Iterator[str]:
        """Yield the stored sums of pools, and the count of arrivals, that contradict the leases."""
        if self._arrivals < self._arrived:
            yield (
                f"admission_clock: arrivals is {self._arrivals}, "
                f"it should be {self._arrived} or more"
            )
        for pool in pools:
            name, slotted = pool.name, pool.spec.limit is None
            awaited = dict(self._awaited.get(name, {})) if slotted else {}
            sought = dict(self._sought.get(name, {})) if slotted else {}
            for word, stored, counted, what in (
                ("occupied", pool.occupied, self._occupied[name], "leases sum up to"),
                ("waiting", pool.waiting, self._waiting[name], "tickets are"),
                ("gangs", pool.gangs, self._gangs[name], "tickets with other pools are"),
                ("sought", pool.sought, sought, "units that tickets want by label are"),
                ("awaited", pool.awaited, awaited, "units that tickets want are"),
            ):
                if stored != counted:
                    yield f"pool {name}: {word} is {stored}, {what} {counted}"

    def places(self, slots: Iterable[Slot]) -> Iterator[str]:
        """Yield each slot and live lease that do not name each other."""
        held = dict(self._held)
        for slot in slots:
            title = f"slot {slot.pool}/{slot.name}"
            lease = held.pop((slot.pool, slot.name), None)
            if slot.pool not in self.names:
                yield f"{title}: pool {slot.pool} does not exist"
            if (slot.owner != "") != (slot.lease is not None):
                yield f"{title}: owner {slot.owner!r}, lease {slot.lease}"
            if slot.lease != lease:
                holder = "no live lease" if lease is None else f"lease {lease}"
                yield f"{title}: its lease is {slot.lease}, {holder} holds it"
        for (pool, name), lease in held.items():
            yield f"lease {lease}: its slot {pool}/{name} does not exist"
