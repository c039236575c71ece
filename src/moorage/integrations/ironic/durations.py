"""How long work on nodes lasts: as its operator expects, as was seen, or as is typical.

The first wave of a new pool has no past. Without a longer `Retry-After` a client gives up before a
deployment on real hardware is over, so work of unknown duration is taken to last as long as is
typical there.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from moorage.integrations.ironic.reconcile import Picture
from moorage.integrations.ironic.rules import verbs_of
from moorage.integrations.ironic.states import EVENTS, FAILED
from moorage.integrations.provisioning.hosts import host_of
from moorage.integrations.provisioning.work_steps import work_state_of
from moorage.wire.admission import Lease

MINUTE: Final = 60.0
TYPICAL: Final[Mapping[str, float]] = {
    **dict.fromkeys(("deploy", "rebuild", "rescue", "unrescue", "unhold"), 15 * MINUTE),
    **dict.fromkeys(("inspect", "provide", "delete"), 15 * MINUTE),
    **dict.fromkeys(("clean", "service"), 60 * MINUTE),
    **dict.fromkeys(("manage", "adopt"), 2 * MINUTE),
}
"""Seconds by event on real hardware, on the long side: it starts twice, which takes minutes each
time. Cleaning that an operator asks for erases disks or writes firmware."""

SEEN_MAX = 50
"""Works of one kind whose lengths are remembered."""

KINDS_MAX = 1_000
"""Pairs of a pool and an event."""

ENOUGH = 5
"""From this many on, what was seen is believed more than what the operator expects."""


@dataclass(frozen=True)
class Length:
    """How long work lasts, in seconds. `known`: it was seen, or the operator expects it."""

    seconds: float
    known: bool


@dataclass(frozen=True)
class _Work:
    began: float | None
    """None: it is unknown, because the work began before the first look."""
    begun: bool


class Durations:
    """The lengths of work that this process has seen begin and end well."""

    def __init__(self) -> None:
        self._works: dict[str, _Work] = {}
        self._leases: dict[str, Lease] = {}
        self._seen: dict[tuple[str, str], deque[float]] = {}
        self._looked = False

    def look(self, picture: Picture, now: float) -> None:
        """Learn from a pass over all nodes; `now` is monotonic."""
        live = {lease.id: lease for leases in picture.leases.values() for lease in leases}
        for gone in self._works.keys() - live.keys():
            self._ended(self._leases[gone], self._works.pop(gone), picture, now)
        for lease_id, lease in live.items():
            before = self._works.get(lease_id)
            began = before.began if before else now if self._looked else None
            self._works[lease_id] = _Work(began, work_state_of(lease).begun)
        self._leases = live
        self._looked = True

    def _ended(self, lease: Lease, work: _Work, picture: Picture, now: float) -> None:
        node = picture.nodes.get(str(host_of(lease)))
        event = EVENTS.get(lease.labels.get("verb", ""))
        if work.began is None or not work.begun or event is None or node is None:
            return
        if node.get("provision_state") in FAILED:
            return
        for need in lease.needs:
            kind = (need.pool, event)
            if kind not in self._seen and len(self._seen) >= KINDS_MAX:
                del self._seen[next(iter(self._seen))]
            self._seen.setdefault(kind, deque(maxlen=SEEN_MAX)).append(now - work.began)

    def length(self, pool: str, verbs: Collection[str], expected: float | None) -> Length:
        """Return how long work of a pool lasts; of several verbs it may be for, the longest.

        Args:
            pool: whose unit it has.
            verbs: what it may be for; none: it is not known.
            expected: what the operator expects.
        """
        events = {EVENTS[verb] for verb in verbs if verb in EVENTS} or {"deploy"}
        found = [self._length(pool, event, expected) for event in sorted(events)]
        return Length(max(one.seconds for one in found), all(one.known for one in found))

    def _length(self, pool: str, event: str, expected: float | None) -> Length:
        seen = sorted(self._seen.get((pool, event), ()))
        if len(seen) >= ENOUGH:
            return Length(seen[len(seen) * 9 // 10], known=True)
        known = [*seen[-1:], *([] if expected is None else [expected])]
        return Length(max(known), known=True) if known else Length(TYPICAL[event], known=False)


def verbs_of_work(lease: Lease, state: str) -> frozenset[str]:
    """Return what a lease may be for: its verb, or those that lead to the state of its node."""
    verb = lease.labels.get("verb", "")
    return frozenset({verb}) if verb in EVENTS else verbs_of(state)
