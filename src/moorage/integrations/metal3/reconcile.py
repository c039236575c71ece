"""Compares BareMetalHosts with the leases of hosts: adopts what works, releases what does not.

One pass reads everything again. Any number of processes may run it side by side.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from moorage.client.transport import RefusedError
from moorage.integrations.metal3.hosts import (
    BareMetalHost,
    may_work,
    name_of,
    occupies,
    start_of,
    uid_of,
    work_of,
)
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import (
    ADOPTED,
    EndedError,
    Host,
    HostLeases,
    host_of,
    label_text,
    work_state_of,
)
from moorage.integrations.provisioning.known_hosts import KnownHosts
from moorage.integrations.provisioning.unit_release import is_over_after_reading
from moorage.wire.admission import Lease

SYSTEM = "metal3"
"""The first word of the keys of its leases."""

log = logging.getLogger("moorage.metal3")


@dataclass(frozen=True)
class Picture:
    """What a pass has seen and done."""

    hosts: dict[str, BareMetalHost] = field(default_factory=dict)
    """By UID."""
    occupied: frozenset[str] = frozenset()
    """Those that work, or may start to work at any moment."""
    leases: dict[str, list[Lease]] = field(default_factory=dict)
    """The leases that were not released, as they were before the hosts were read."""
    adopted: int = 0
    released: int = 0
    uncounted: frozenset[str] = frozenset()
    """Pools of which hosts need units that they could not be given: nothing else starts there."""


def host_of_object(host: BareMetalHost, verb: str) -> Host:
    """Return a host as the holder of a lease, with labels for people."""
    labels = {"holder": name_of(host), "verb": verb}
    return Host(SYSTEM, uid_of(host), {name: label_text(text) for name, text in labels.items()})


class Reconciler:
    """Passes over the hosts of one cluster."""

    def __init__(self, host_leases: HostLeases, requests: HostRequests, rules: Rules) -> None:
        self._host_leases = host_leases
        self._requests = requests
        self._rules = rules
        self._known = KnownHosts(host_leases.installation)

    def governs(self, lease: Lease) -> bool:
        """Return whether a lease or ticket is of a host that is here, or was."""
        return self._known.has(lease)

    async def run_once(self) -> Picture:
        """Make one pass. Raises HostSystemError, UnreachableError, RefusedError."""
        # The leases first: what is released must have been noted before the reading began.
        noted = await self._host_leases.working(SYSTEM)
        hosts = {uid_of(host): host for host in await self._requests.all()}
        self._known.look(hosts, noted)
        occupied = {uid for uid, host in hosts.items() if occupies(host)}
        busy = {uid for uid, host in hosts.items() if may_work(host)}
        left: dict[str, list[Lease]] = {}
        released = 0
        for lease in (one for leases in noted.values() for one in leases if self.governs(one)):
            uid = str(host_of(lease))
            if await self._released(lease, busy=uid in busy):
                released += 1
            else:
                left.setdefault(uid, []).append(lease)
        missing = [hosts[uid] for uid in occupied if uid not in noted]
        adopted, uncounted = await self._adopt(missing)
        return Picture(hosts, frozenset(occupied), left, adopted, released, uncounted)

    async def _released(self, lease: Lease, *, busy: bool) -> bool:
        """Release a lease if its work is over; one that Moorage refuses does not stop the pass."""
        state = work_state_of(lease)
        if not is_over_after_reading(state, busy=busy):
            return False
        try:
            return await self._host_leases.release_after_reading(lease, busy=busy)
        except RefusedError as refusal:
            log.error("the lease of host %s stays: %s", lease.labels.get("holder"), refusal)
            return False

    async def _adopt(self, hosts: Collection[BareMetalHost]) -> tuple[int, frozenset[str]]:
        """Count hosts that occupy units without a lease; return how many, and pools in trouble."""
        if not hosts:
            return 0, frozenset()
        # Again: a unit may have been granted after the first look, and before the hosts were read.
        working = await self._host_leases.working(SYSTEM)
        adopted, refused = 0, set[str]()
        for before in hosts:
            host = None if uid_of(before) in working else await self._requests.again(before)
            verb = None if host is None or not occupies(host) else work_of(host) or start_of(host)
            if host is None or verb is None:
                continue
            needs = self._rules.needs(host, verb)
            if not needs.units:
                continue
            try:
                await self._host_leases.adopt(host_of_object(host, ADOPTED), needs.units)
            except (RefusedError, EndedError) as error:
                log.error("host %s works and cannot be counted: %s", name_of(host), error)
                refused |= needs.units.keys()
            else:
                log.info("host %s: counted (%s)", name_of(host), verb)
                adopted += 1
        return adopted, frozenset(refused)
