"""Hosts that wait for each other: each keeps units that another one needs.

A host that works keeps its units while it waits for more. If all units of a pool are kept by hosts
that wait for it, none of them ever gets one. Then the first in line goes over the limit: no host
can be made to give back the units of work that has begun.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.integrations.clock import monotonic
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.start import Start
from moorage.wire.admission import Lease

DURING = "during"
"""The label of a ticket whose host keeps its units while it waits: what it does."""

STANDSTILL_SECONDS = 5.0
"""How long hosts wait for each other before one goes over the limit: a grant may be under way."""

log = logging.getLogger("moorage.provisioning")


@dataclass(frozen=True)
class Claim:
    """A host that keeps units and waits for more; units by pool."""

    uuid: str
    has: Mapping[str, int]
    needs: Mapping[str, int]


def deadlocked(claims: Sequence[Claim], limits: Mapping[str, int]) -> list[Claim]:
    """Return the claims that can only be granted after another one of them, in their order.

    Other holders are taken to return their units. A claim that exceeds a limit by itself waits for
    people, who may change the limit; so it is taken to be granted.
    """
    left = [
        one
        for one in claims
        if all(units + one.has.get(pool, 0) <= limits[pool] for pool, units in one.needs.items())
    ]
    free = Counter(limits)
    for one in left:
        free.subtract(one.has)
    while granted := [
        one for one in left if all(units <= free[pool] for pool, units in one.needs.items())
    ]:
        for one in granted:
            free.update(one.has)
        left = [one for one in left if one not in granted]
    return left


class Deadlocks:
    """Finds hosts that wait for each other, pass by pass."""

    def __init__(self, host_leases: HostLeases) -> None:
        """Begin with none."""
        self._host_leases = host_leases
        self._first: tuple[str, float] | None = None
        """The first in line of the hosts that wait for each other, and since when it is."""

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
        first = await self._first_of(_claims(starts, tickets, leases))
        if first is None:
            self._first = None
        elif self._first is None or self._first[0] != first:
            self._first = first, monotonic()
        elif monotonic() - self._first[1] >= STANDSTILL_SECONDS:
            return [self._forced(one) if one.host.uuid == first else one for one in starts]
        return [*starts]

    async def _first_of(self, claims: Sequence[Claim]) -> str | None:
        pools = {pool for one in claims for pool in one.needs}
        if sum(not pools.isdisjoint(one.has) for one in claims) < 2:
            return None  # a claim never waits for itself
        limits = {pool: await self._host_leases.limit_of(pool) for pool in sorted(pools)}
        return next((one.uuid for one in deadlocked(claims, limits)), None)

    def _forced(self, start: Start) -> Start:
        log.warning(
            "host %s goes over the limit of %s: all hosts that have these units wait for more",
            start.host.labels.get("holder", start.host.uuid),
            " and ".join(sorted(start.needs)),
        )
        return replace(start, forced=True)


def _claims(
    starts: Iterable[Start], tickets: Mapping[str, Collection[Lease]], leases: Iterable[Lease]
) -> list[Claim]:
    """Return the hosts that keep units and have a place in line, in the order of the line."""
    own = {start.host.uuid: start for start in starts}
    has: dict[str, Counter[str]] = {}
    for lease in leases:
        units = has.setdefault(lease.key.split("/")[1], Counter())
        units.update({need.pool: need.units for need in lease.needs})
    places = sorted(
        (ticket.waiting.position, uuid, ticket)
        for uuid, waiting in tickets.items()
        for ticket in waiting
        if ticket.waiting is not None and DURING in ticket.labels and uuid in has
    )
    return [
        Claim(uuid, has[uuid], {need.pool: need.units for need in ticket.needs})
        for _, uuid, ticket in places
        if uuid not in own or own[uuid].beside
    ]
