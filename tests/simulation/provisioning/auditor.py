"""Watches the hosts themselves: never more of them work than the limit permits.

P1  A request that came through Moorage makes no more hosts work than the limit was when the last of
    them was granted its unit. What was forced, or adopted, after that grant is not counted.
P2  A host that works because of such a request has a unit until it works no more.
P3  What worked without a unit before a process started is counted before that process is granted
    anything.
P4  A wish is carried out once.
P5  Without faults, whatever works is counted soon.
P6  Without faults, a unit of a host that does not work becomes free within the known graces.
P7  Without faults, every client, wish and rollout comes to its end in bounded time.
P8  A process never ends by an error of its own.
"""

from dataclasses import dataclass, field
from typing import Any

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from moorage.integrations.provisioning.unit_release import WIRE_GRACE_SECONDS
from tests.simulation.admission.memory import Memory
from tests.support.ironic_double.fleet import Node

COUNTED_SECONDS = 20.0
FREED_SECONDS = WIRE_GRACE_SECONDS + 60.0


class Violation(AssertionError):
    """Something that must always hold does not."""


@dataclass(frozen=True)
class Origin:
    """Who has sent a request to Ironic.

    `governed`: through Moorage. `forced`: without waiting for its turn. `needless`: it needed no
    unit in the state in which the node was when it was decided.
    """

    name: str
    governed: bool = False
    forced: bool = False
    needless: bool = False
    wish: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it had to wait for its turn."""
        return self.governed and not self.forced and not self.needless


@dataclass
class Work:
    """A host works. `lease`: by which it had a unit when it began; None: it had none."""

    since: float
    origin: Origin
    lease: LeaseId | None


@dataclass
class Auditor:
    """What is true of hosts, and what Moorage has decided."""

    memory: Memory
    now: Any
    works: dict[str, Work] = field(default_factory=dict)
    idle_since: dict[str, float] = field(default_factory=dict)
    grants: dict[LeaseId, tuple[int, int]] = field(default_factory=dict)
    """By lease: its number in the order of grants, and the limit at that time."""
    askers: dict[str, set[float]] = field(default_factory=dict)
    """By key: when the processes that ask for it were started."""
    wishes: dict[str, int] = field(default_factory=dict)
    starts: int = 0
    governed: int = 0
    adopted: int = 0

    # Hosts.

    def began(self, node: Node, origin: Origin) -> None:
        """A host has begun to work."""
        leases = self.leases_of(node.uuid)
        first = min(leases, key=lambda one: self.grants[one.id][0], default=None)
        self.works[node.uuid] = Work(self.now(), origin, None if first is None else first.id)
        self.idle_since.pop(node.uuid, None)
        self.starts += 1
        if origin.wish is not None:
            self.wishes[origin.wish] = self.wishes.get(origin.wish, 0) + 1
            claim(self.wishes[origin.wish] == 1, "P4", origin.wish, "is carried out again")
        if not origin.governed:
            return
        self.governed += 1
        if origin.waits and first is not None:
            self._count()
        elif origin.waits:
            self._count_without(node)
        claim(first is not None or origin.needless, "P2", origin, "starts", node.name, "unitless")

    def ended(self, uuid: str) -> None:
        """A host works no more."""
        self.works.pop(uuid, None)
        self.idle_since[uuid] = self.now()

    def leases_of(self, uuid: str) -> list[Lease]:
        """Return the leases by which a host has units."""
        return [
            lease
            for lease in self.memory.leases.values()
            if lease.state == "granted" and host_of(lease) == uuid
        ]

    def _count(self) -> None:
        """P1, after a request that had a unit has made a host work."""
        numbered = [(self._number(uuid, work), work) for uuid, work in self.works.items()]
        last, limit = max((at for at, work in numbered if at and work.origin.waits), default=(0, 0))
        count = sum(at is not None and at[0] <= last for at, _ in numbered)
        claim(count <= limit or not last, "P1", count, "hosts work, the limit was", limit)

    def _count_without(self, node: Node) -> None:
        """P1, after a request without a unit has made a host work: it counts, too."""
        busy = [uuid for uuid, work in self.works.items() if self._number(uuid, work)]
        limits = [pool.spec.limit or 0 for pool in self.memory.pools.values()]
        claim(len(busy) + 1 <= max(limits, default=0), "P1", node.name, "is one too many", busy)

    def _number(self, uuid: str, work: Work) -> tuple[int, int] | None:
        """Return number and limit of the grant by which a host works; None: it does not count."""
        if work.origin.governed and work.lease is not None:
            return self.grants[work.lease]
        leases = self.leases_of(uuid)  # a foreign one counts as soon as it is adopted
        return min((self.grants[lease.id] for lease in leases), default=None)

    # Moorage.

    def decided(self, changes: Changes) -> None:
        """A batch is about to be stored."""
        for key, lease in changes.leases.items():
            before = self.memory.leases.get(key)
            was = before is not None and before.state == "granted"
            if lease is not None and lease.state == "granted" and not was:
                self._granted(lease, changes)
            if lease is not None and lease.state == "ended" and before is not None:
                self.askers.pop(before.key, None)
                if was:
                    self._ended(before)

    def _granted(self, lease: Lease, changes: Changes) -> None:
        limits = [
            (changes.pools.get(need.pool) or self.memory.pools[need.pool]).spec.limit or 0
            for need in lease.needs
        ]
        self.grants[lease.id] = (len(self.grants) + 1, min(limits))
        if lease.key.endswith("/adopted"):
            self.adopted += 1
        if lease.forced:
            return
        for began in self.askers.get(lease.key, ()):
            for uuid, work in self.works.items():
                missed = work.since < began and not self.leases_of(uuid)
                claim(not missed, "P3", lease.key, "is granted, but", uuid, "is not counted")

    def _ended(self, lease: Lease) -> None:
        work = self.works.get(str(host_of(lease)))
        others = [one for one in self.leases_of(str(host_of(lease))) if one.id != lease.id]
        if work is None or others or lease.needs == ():
            return
        if work.origin.governed:
            claim(work.lease != lease.id, "P2", lease.key, "ends while its host works:", work)

    # When nothing goes wrong any more.

    def calm(self, since: float) -> None:
        """P5, P6: `since` when there are no faults."""
        now = self.now()
        for uuid, work in self.works.items():
            counted = bool(self.leases_of(uuid))
            late = now - max(work.since, since) > COUNTED_SECONDS
            claim(counted or not late, "P5", uuid, "works and is not counted:", work)
        for lease in self.memory.leases.values():
            uuid = str(host_of(lease))
            if lease.state != "granted" or uuid in self.works or self.may_start(uuid):
                continue
            last = (lease.recorded_at or lease.granted_at or 0) / 1e6 - self.memory_began
            idle = max(self.idle_since.get(uuid, 0.0), since, last)
            claim(now - idle <= FREED_SECONDS, "P6", lease.key, "is not freed:", lease)

    def may_start(self, uuid: str) -> bool:
        """Return whether an idle host starts by itself, and so keeps its unit."""
        return False

    memory_began: float = 0.0
    """The wall clock at second 0."""


def host_of(lease: Lease) -> str | None:
    """Return the host of a lease; None: it is not the lease of a host."""
    parts = lease.key.split("/")
    return parts[1] if len(parts) >= 3 else None


def claim(holds: bool, *said: object) -> None:
    """Raise Violation, unless something holds."""
    if not holds:
        raise Violation(" ".join(map(str, said)))
