"""Watches the nodes behind metal3's operator, and every version of its hosts.

P1 to P8 as of all hosts (`tests/simulation/provisioning/auditor.py`), where a host is governed
unless people start it past the line: they remove our pause by hand, or change or remove an image
that is deployed. And:

H1  A write adds our pause only to a host that has something to start, or that goes on to its image
    from an inspection or a cleaning: never to an idle available host, nor to other work.
H2  The pause of somebody else is changed by nobody but him.
H3  The governor changes nothing of a host but our pause and our notes.
H4  Without faults, no pause of ours is left in the end.
H5  Where images have a pool of their own, a host gets an image only with its unit, and no more
    units than the limit are granted to those who wait for them. A host whose start was granted gets
    none by force, unless people started it past the line.
H6  Where an image takes one more unit of the same pool, a host that waits for it goes over the
    limit only if all units were kept by such hosts a moment ago.
H7  When the governor removes our pause from a host that has something to start, the host has units.
H8  Without faults, a host that only waits for the operator's back-off has no units.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from moorage.core.admission.model import Lease, Need
from tests.simulation.metal3.cluster import GOVERNOR
from tests.simulation.provisioning.auditor import Auditor, Origin, claim
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import DETACHED, PAUSED, Object
from tests.support.kubernetes_double.storage import Change
from tests.support.kubernetes_double.writes import KEPT

POOL, IMAGES = "deploy", "images"
OWN = "moorage"
NOTES = "moorage"
"""Annotations whose names have this word are ours."""
RELEASED_SECONDS = 90.0
"""A host that has failed gives its units back within this time."""
LEAVING = ("powering off before delete", "deleting")
FREE = Origin("people")
HELD = Origin("bmo", governed=True)
UNLOCK_SECONDS = 150.0
"""A governor sees that hosts wait for each other, and asks: both may be a minute late."""


@dataclass(frozen=True)
class Worker:
    """A host, as the auditor of all hosts names it."""

    uuid: str
    name: str


def may_go_on(host: Object) -> bool:
    """Return whether an idle host without a pause works soon."""
    state, paused = hosts.state(host), PAUSED in hosts.annotations(host)
    operational = host.get("status", {}).get("operationalStatus")
    if DETACHED in hosts.annotations(host) and operational == hosts.OPERATIONAL_DETACHED:
        return False
    if hosts.backs_off(host) and (paused or state == "deprovisioning"):
        return False
    if state in ("inspecting", "preparing", "provisioning", "deprovisioning", *LEAVING):
        return True  # a unit that it has stays until it is gone
    if paused:
        return False
    leaving = bool(host["metadata"].get("deletionTimestamp"))
    ends = state == "provisioned" and (leaving or hosts.cancelled(host))
    return ends or hosts.something_to_start(host)


@dataclass
class HostAuditor(Auditor):
    """What is true of hosts, and what Moorage has decided. `named` finds a stored host."""

    named: Callable[[str], Object | None] = lambda _: None
    free: set[str] = field(default_factory=set)
    """Hosts, by UID, that people let start past the line, until they have a unit or are settled."""
    uids: dict[str, str] = field(default_factory=dict)
    """Of nodes that work, by name."""
    exempted: set[str] = field(default_factory=set)
    """Hosts, by UID, that were ever exempt."""
    images: int = 0
    """The limit of the pool for images; 0: there is none."""
    hosts: dict[str, Object] = field(default_factory=dict)
    """The last version of each, by UID."""
    backs_off: dict[str, float] = field(default_factory=dict)
    """The hosts that have failed, by UID: since when nothing more was stored of them."""
    is_double: bool = False
    """Whether an image takes one more unit of the same pool."""
    stood_still: float = float("-inf")
    """When all units were last kept by hosts that waited for more."""
    unlocked: int = 0
    """How many have gone over the limit because of this."""

    # Images.

    def leases_of(self, uuid: str) -> list[Lease]:
        """Return the leases by which a host works; those for its image alone are another matter."""
        return [lease for lease in super().leases_of(uuid) if _has(lease, POOL)]

    def _granted(self, lease: Lease, changes: Any) -> None:
        uid = lease.key.split("/")[1]
        counted = lease.key.endswith("/adopted") or uid in self.exempted
        if lease.forced and not counted and self.is_double:
            self.unlocked += 1
            still = self.now() - self.stood_still <= UNLOCK_SECONDS
            claim(still, "H6", lease.key, "is granted over the limit")
        else:
            claim(counted or not lease.forced, "P1", lease.key, "is granted over the limit")
        if _has(lease, POOL):
            super()._granted(replace(lease, needs=_only(lease, POOL)), changes)
        if not _has(lease, IMAGES):
            return
        given = {**self.memory.leases, **changes.leases}
        waited = sum(
            one.state == "granted" and not one.forced and _has(one, IMAGES)
            for one in given.values()
            if one is not None
        )
        claim(waited <= self.images, "H5", waited, "images, the limit is", self.images)
        if lease.key.endswith("/image/adopted"):
            past = uid in self.free or any(one.forced for one in self.leases_of(uid))
            claim(past, "H5", lease.key, "did not wait in line")

    def image_began(self, node: str) -> None:
        """A node begins to get an image."""
        uid = self.uids[node]
        if not self.images or uid in self.free:
            return
        leases = super().leases_of(uid)
        claim(any(_has(one, IMAGES) for one in leases), "H5", node, "has no unit for its image")

    def _stands_still(self) -> bool:
        """Return whether all units are kept by hosts that wait for more."""
        kept = [
            (lease.key.split("/")[1], need.units)
            for lease in self.memory.leases.values()
            for need in lease.needs
            if lease.state == "granted" and need.pool == POOL
        ]
        pool = self.memory.pools.get(POOL)
        limit = pool.spec.limit or 0 if pool is not None else 0
        return sum(units for _, units in kept) >= limit and all(
            hosts.annotations(host).get(PAUSED) == OWN
            and hosts.state(host) in ("inspecting", "preparing")
            for host in (self.hosts.get(uid, {"metadata": {}}) for uid, _ in kept)
        )

    def _look(self) -> None:
        if self.is_double and self._stands_still():
            self.stood_still = self.now()

    # Nodes.

    def node_began(self, node: str) -> None:
        """A node has begun to work."""
        host = self.named(node.partition("~")[2])
        claim(host is not None, "P2", node, "works without a host")
        assert host is not None
        uid = str(host["metadata"]["uid"])
        self.uids[node] = uid
        removed_again = hosts.state(host) == "deprovisioning" and hosts.backs_off(host)
        origin = FREE if uid in self.free or removed_again else HELD  # no removal is held back
        if origin is HELD and any(lease.forced for lease in self.leases_of(uid)):
            origin = Origin("bmo", governed=True, forced=True)
        self.began(Worker(uid, node), origin)  # type: ignore[arg-type] # all that it reads of a node

    def node_over(self, node: str) -> None:
        """A node works no more."""
        self.ended(self.uids.pop(node))

    # Versions.

    def stored(self, user: str, change: Change) -> None:
        """A version of a host was stored."""
        self._look()
        new, old = change.object, change.before
        uid = str(new["metadata"]["uid"])
        if uid not in self.works:
            self.idle_since[uid] = self.now()  # until now it may have been about to go on
        if change.type == "DELETED":
            self.hosts.pop(uid, None)
            self.backs_off.pop(uid, None)
            self.free.discard(uid)
            return
        self._note_failure(uid, new, old)
        self.hosts[uid] = new
        if (new["metadata"].get("labels") or {}).get("urgent") == "true":
            self.exempted.add(uid)
        was = None if old is None else hosts.annotations(old).get(PAUSED)
        now = hosts.annotations(new).get(PAUSED)
        if now == OWN != was:
            claim(hosts.may_be_paused(new), "H1", new["metadata"]["name"], "is paused by", user)
        if user == GOVERNOR:
            assert old is not None
            claim(was in (None, OWN) or now == was, "H2", user, "changes the pause", was)
            claim(_foreign(new) == _foreign(old), "H3", user, "changes", old, "to", new)
            if was == OWN and now is None and hosts.something_to_start(new):
                claim(bool(self.leases_of(uid)), "H7", new["metadata"]["name"], "has no unit")
        elif user != "bmo":
            self._written(uid, new, old)
        if not (may_go_on(new) or hosts.backs_off(new) or uid in self.works):
            self.free.discard(uid)

    def _note_failure(self, uid: str, new: Object, old: Object | None) -> None:
        if not hosts.backs_off(new):
            self.backs_off.pop(uid, None)
        elif old is None or new.get("status") != old.get("status"):
            self.backs_off[uid] = self.now()

    def calm(self, since: float) -> None:
        super().calm(since)
        for uid, failed in self.backs_off.items():
            for lease in self.leases_of(uid):
                last = (lease.recorded_at or lease.granted_at or 0) / 1e6 - self.memory_began
                late = self.now() - max(failed, since, last) > RELEASED_SECONDS
                claim(not late or uid in self.works, "H8", lease.key, "has failed, has units")

    def _written(self, uid: str, new: Object, old: Object | None) -> None:
        """People have written a host."""
        if old is None:
            return
        by_hand = hosts.annotations(old).get(PAUSED) == OWN and PAUSED not in hosts.annotations(new)
        leaving = bool(new["metadata"].get("deletionTimestamp"))
        deployed = hosts.state(new) == "provisioned" and (leaving or hosts.cancelled(new))
        if by_hand or deployed:
            self.free.add(uid)

    def decided(self, changes: Any) -> None:
        self._look()
        super().decided(changes)
        self._look()
        for lease in changes.leases.values():
            if lease is not None and lease.state == "granted":
                before = self.memory.leases.get(lease.id)
                if before is None or before.state != "granted":
                    self.free.discard(lease.key.split("/")[1])

    def may_start(self, uuid: str) -> bool:
        host = self.hosts.get(uuid)
        return host is not None and may_go_on(host)

    def our_pauses(self) -> list[str]:
        """Return the names of the hosts that have our pause."""
        return [
            str(one["metadata"]["name"])
            for one in self.hosts.values()
            if hosts.annotations(one).get(PAUSED) == OWN
        ]


def _has(lease: Lease, pool: str) -> bool:
    return any(need.pool == pool for need in lease.needs)


def _only(lease: Lease, pool: str) -> tuple[Need, ...]:
    return tuple(need for need in lease.needs if need.pool == pool)


def _foreign(host: Object) -> Any:
    """Return everything of a host that is not ours."""
    fixed = {*KEPT, "annotations", "managedFields", "resourceVersion"}
    metadata = {name: one for name, one in host["metadata"].items() if name not in fixed}
    foreign = {
        name: one
        for name, one in hosts.annotations(host).items()
        if name != PAUSED and NOTES not in name
    }
    return {**host, "metadata": {**metadata, "annotations": foreign}}
