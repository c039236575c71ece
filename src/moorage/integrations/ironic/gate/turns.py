"""When the turn of a node that waits may come, so that its client is asked to wait long enough.

Moorage estimates it from the past of the pool. Its answer is used, but the gate also knows what
each node works on: of a pool that is new, or has other kinds of work in its past, it knows better.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.durations import verbs_of_work
from moorage.integrations.ironic.gate.units import HeldBackError, WaitingError, Want
from moorage.integrations.ironic.gate.watch import Watch
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.hosts import host_of
from moorage.wire.admission import Lease, Waiting

OVERDUE_SHARE: Final = 0.25
"""Overdue work is expected to last longer by this share of its expected time."""

LIMIT_SECONDS = 5.0
LIMITS_MAX = 1_000
"""For how long, and of how many pools, the limit is remembered."""


class Turns:
    """Estimates turns, for the refusals of one gate."""

    def __init__(self, host_leases: HostLeases, watch: Watch, rules: Rules) -> None:
        self._host_leases = host_leases
        self._watch = watch
        self._rules = rules
        self._limits: dict[str, tuple[float, int]] = {}
        """When it was asked for, and what it was, by pool."""

    async def held_back(self, waits: WaitingError) -> HeldBackError:
        """Return the refusal of a request that waits. Raises UnreachableError, RefusedError."""
        want, waiting = waits.want, waits.ticket.waiting
        if waiting is None:
            return HeldBackError(f"node {want.name}: its request was withdrawn; ask again")
        latest = await self._latest(want, waiting)
        estimate = "no estimate" if latest is None else f"at most {latest:.0f} s"
        pools = " and ".join(sorted(want.units))
        return HeldBackError(
            f"node {want.name} waits for its turn: place {waiting.position} of {pools}; {estimate};"
            f" {waiting.reason}",
            latest,
            waits=True,
        )

    async def _latest(self, want: Want, waiting: Waiting) -> float | None:
        """Return in how many seconds the turn comes at the latest; None: it is unknown."""
        told = None if waiting.eta_seconds is None else waiting.eta_seconds[1]
        found = []
        known = True
        for pool, units in want.units.items():
            limit = await self._limit(pool)
            if limit < units:
                return None
            lasts = self._watch.durations.length(pool, {want.verb}, want.expected)
            known = known and lasts.known
            left = self._left(pool, units, lasts.seconds)
            found.append(turn_in(waiting.position, limit // units, left, lasts.seconds))
        if not known:
            return max(found, default=None) if told is None else told
        return max([*found, *([] if told is None else [told])], default=None)

    async def _limit(self, pool: str) -> int:
        at, limit = self._limits.get(pool, (float("-inf"), 0))
        if monotonic() - at < LIMIT_SECONDS:
            return limit
        limit = await self._host_leases.limit_of(pool)
        if len(self._limits) >= LIMITS_MAX:
            self._limits.clear()
        self._limits[pool] = (monotonic(), limit)
        return limit

    def _left(self, pool: str, units: int, usual: float) -> list[float]:
        """Return how long each holder of units of a pool keeps them; one for each `units`."""
        picture = self._watch.picture
        leases = [*(one for held in picture.leases.values() for one in held), *picture.foreign]
        found: list[float] = []
        for lease in leases:
            held = sum(need.units for need in lease.needs if need.pool == pool)
            if held:
                found += [self._rest(lease, pool, usual)] * max(1, held // units)
        return found

    def _rest(self, lease: Lease, pool: str, usual: float) -> float:
        node = self._watch.picture.nodes.get(str(host_of(lease)))
        lasts = usual
        if node is not None:
            verbs = verbs_of_work(lease, str(node.get("provision_state")))
            expected = self._rules.expected_of(node, verbs)
            lasts = self._watch.durations.length(pool, verbs, expected).seconds
        return max(lasts - (lease.record_age or 0.0), OVERDUE_SHARE * lasts)


def turn_in(place: int, room: int, left: list[float], lasts: float) -> float:
    """Return in how many seconds a place in line is served.

    Args:
        place: in line, from 1.
        room: how many hosts may work at once.
        left: how long each host that works keeps its units; of those that are not listed nothing
            is known, so they are taken to have just begun.
        lasts: how long the work of those that wait lasts.
    """
    ends = sorted(left)[-room:]
    ends += [lasts] * (room - len(ends))
    heapify(ends)
    for _ in range(place - 1):
        heappush(ends, heappop(ends) + lasts)
    return ends[0]
