"""Hosts that wait for each other: each keeps units that another one needs.

A host that works keeps its units while it waits for more. If all units of a pool are kept by hosts
that wait for it, or set aside for such hosts, none of them ever gets one. Then the first in line
goes over the limit: no host can be made to give back the units of work that has begun.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from moorage.integrations.bounded import run_bounded
from moorage.integrations.clock import monotonic
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.hosts import host_of
from moorage.integrations.provisioning.reconcile import units_of
from moorage.integrations.provisioning.start import Start
from moorage.wire.admission import Lease

DURING = "during"
"""The label of a ticket whose host keeps its units while it waits: what it does."""

STANDSTILL_SECONDS = 5.0
"""How long hosts wait for each other before one goes over the limit: a grant may be under way."""

OTHERS_SECONDS = 60.0
"""The same, if one of another installation is the first: its governor may be gone."""

READING_MAX = 8
"""Pools that are read at the same time."""

log = logging.getLogger("moorage.provisioning")


@dataclass(frozen=True)
class WaitingHost:
    """A host that waits, with the units that it keeps meanwhile; units by pool."""

    uuid: str
    has: Mapping[str, int]
    needs: Mapping[str, int]


def deadlocked(hosts: Sequence[WaitingHost], limits: Mapping[str, int]) -> list[WaitingHost]:
    """Return the hosts that can only get units after another one of them, in their order.

    They come in the order of the line: free units are set aside for those before. Other holders
    are taken to return their units. A host that exceeds a limit by itself waits for people, who
    may change the limit; so it is taken to get its units.
    """
    left = [
        one
        for one in hosts
        if all(units + one.has.get(pool, 0) <= limits[pool] for pool, units in one.needs.items())
    ]
    free = Counter(limits)
    for one in left:
        free.subtract(one.has)
    while True:
        waiting: list[WaitingHost] = []
        aside: Counter[str] = Counter()
        for one in left:
            if all(units <= free[pool] - aside[pool] for pool, units in one.needs.items()):
                free.update(one.has)
            else:
                waiting.append(one)
                aside.update(one.needs)
        if len(waiting) == len(left):
            return waiting
        left = waiting


class Deadlocks:
    """Finds hosts that wait for each other, pass by pass."""

    def __init__(self, host_leases: HostLeases) -> None:
        """Begin with none."""
        self._host_leases = host_leases
        self._first: tuple[str, float] | None = None
        """The first own host in line of those that wait for each other, and since when it is."""

    async def broken(
        self,
        starts: Collection[Start],
        tickets: Mapping[str, Collection[Lease]],
        leases: Iterable[Lease],
    ) -> list[Start]:
        """Return the starts; one of hosts that wait for each other is forced.

        Args:
            starts: those of one installation.
            tickets: of all installations, by the UUID of the host.
            leases: of all installations.

        Raises UnreachableError, RefusedError.
        """
        hosts = await self._stuck(_waiting_hosts(starts, tickets, leases))
        stuck = [one.uuid for one in hosts if one.has]
        own = {one.host.uuid for one in starts if one.beside}
        first = next((uuid for uuid in stuck if uuid in own), None)
        if first is None:
            self._first = None
            return [*starts]
        if self._first is None or self._first[0] != first:
            self._first = first, monotonic()
        patience = STANDSTILL_SECONDS if stuck[0] == first else OTHERS_SECONDS
        if monotonic() - self._first[1] < patience:
            return [*starts]
        return [self._forced(one) if one.host.uuid == first else one for one in starts]

    async def _stuck(self, hosts: Sequence[WaitingHost]) -> list[WaitingHost]:
        pools = {pool for one in hosts for pool in one.needs}
        if len(hosts) < 2 or all(pools.isdisjoint(one.has) for one in hosts):
            return []  # a host never waits for itself
        limits: dict[str, int] = {}

        async def read(pool: str) -> None:
            limits[pool] = await self._host_leases.limit_of(pool)

        await run_bounded(READING_MAX, [partial(read, pool) for pool in sorted(pools)])
        return deadlocked(hosts, limits)

    def _forced(self, start: Start) -> Start:
        log.warning(
            "host %s goes over the limit of %s: all hosts that have these units wait for more",
            start.host.labels.get("holder", start.host.uuid),
            " and ".join(sorted(start.needs)),
        )
        return replace(start, forced=True)


def _waiting_hosts(
    starts: Iterable[Start], tickets: Mapping[str, Collection[Lease]], leases: Iterable[Lease]
) -> list[WaitingHost]:
    """Return the hosts that keep units, or for which units are set aside, in the order of the line.

    Units are set aside for tickets that need several pools.
    """
    own = {start.host.uuid: start for start in starts}
    kept: dict[str, list[Lease]] = {}
    for lease in leases:
        kept.setdefault(str(host_of(lease)), []).append(lease)
    has = {uuid: units_of(found) for uuid, found in kept.items()}
    places = sorted(
        (ticket.waiting.position, uuid, ticket)
        for uuid, waiting in tickets.items()
        for ticket in waiting
        if ticket.waiting is not None
    )
    hosts = []
    for _, uuid, ticket in places:
        needs = units_of([ticket])
        keeps = DURING in ticket.labels and uuid in has and (uuid not in own or own[uuid].beside)
        if keeps:
            hosts.append(WaitingHost(uuid, has[uuid], needs))
        elif len(needs) > 1 and uuid not in has:
            hosts.append(WaitingHost(uuid, {}, needs))
    return hosts if any(one.has for one in hosts) else []
