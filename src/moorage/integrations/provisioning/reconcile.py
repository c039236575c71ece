"""Compares the hosts of a system with their leases: adopts what is busy, releases what is not.

One pass reads everything again, and remembers nothing of earlier ones. Any number of processes may
run it side by side: a release counts only if nobody has taken a step meanwhile, and who is adopted
twice has one lease.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.provisioning.host_leases import HostLeases, lacks_of
from moorage.integrations.provisioning.hosts import Host, host_of, installation_of, label_text
from moorage.integrations.provisioning.known_hosts import KnownHosts
from moorage.integrations.provisioning.occupation import Occupation
from moorage.integrations.provisioning.unit_release import is_over_after_reading
from moorage.integrations.provisioning.work_steps import CrowdedError, EndedError, work_state_of
from moorage.wire.admission import Lease

H = TypeVar("H")

RENEWALS = 3
"""How many times a lease is renewed within its TTL, so that it is shown as `unheard` only if no
process governs its host."""


@dataclass(frozen=True)
class Picture(Generic[H]):
    """The observations and actions of a pass."""

    hosts: dict[str, H] = field(default_factory=dict)
    """By UUID."""
    busy: frozenset[str] = frozenset()
    """The hosts that occupy their units."""
    leases: dict[str, list[Lease]] = field(default_factory=dict)
    """The leases that were not released, as they were before the hosts were read."""
    adopted: frozenset[str] = frozenset()
    """The hosts that were counted in this pass, by UUID: `leases` lacks those leases."""
    released: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why hosts that are busy could not be counted, by UUID."""
    uncounted: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The hosts that lack units of each pool, by UUID: no other one can be started from it."""
    units: Mapping[str, int] = field(default_factory=dict)
    """Units that its hosts had when the pass began, by pool."""
    foreign: Sequence[Lease] = ()
    """The leases of hosts that were never here: another installation's, or unknown."""

    @property
    def failed(self) -> int:
        """How many hosts are busy without a unit because Moorage refused to count them."""
        return len(self.refused)

    def blocked(self, uuid: str, pools: Iterable[str]) -> list[str]:
        """Return the pools from which a host cannot be started: others work uncounted there."""
        return sorted(one for one in pools if {*self.uncounted.get(one, ())} - {uuid})


@dataclass(frozen=True)
class Words:
    """How a system is named: `system` in the keys of leases, the others in the log."""

    system: str
    host: str
    """The word for one of its hosts, such as `node`."""
    installation: str
    """The name of the system that has the hosts, such as `this Ironic`."""
    are_unique: bool = False
    """See `KnownHosts`."""


@dataclass(frozen=True)
class Busy:
    """A host that is busy without a unit: `doing` says with what, for the log."""

    host: Host
    units: Mapping[str, int]
    doing: str
    beside: str = ""
    """For what it needs them, beside the units that it has; empty: it has none."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of the work of a lease: `result` is ok or failed."""

    result: str
    detail: str = ""


class System(Protocol[H]):
    """A system of hosts, such as an Ironic. Requests to it raise HostSystemError."""

    words: Words
    log: logging.Logger

    async def hosts(self) -> dict[str, H]:
        """Return all hosts, by UUID; the list may lack hosts, or be out of date."""
        ...

    def name_of(self, uuid: str, host: H) -> str:
        """Return the name of a host for the log."""
        ...

    def lease_name_of(self, lease: Lease) -> str:
        """Return the name of the host of a lease for the log; the host may be gone."""
        ...

    def occupation(self, host: H) -> Occupation:
        """Return whether a host needs units, or keeps those that it has."""
        ...

    async def confirmed(self, lease: Lease, listed: H | None) -> H | None:
        """Return the host of a lease as a reading shows it that began after leases were noted.

        None: it is gone. `listed` is the host in the list; None: the list lacks it.
        """
        ...

    def may_lack(self, host: H, leases: Collection[Lease]) -> bool:
        """Return whether a host that needs units may not have all of them by its leases."""
        ...

    async def lacking(self, listed: H, leases: Collection[Lease]) -> Busy | None:
        """Return which units a listed host lacks beside those of its leases; None: none.

        The host is read again: its unit may have been released since the list was read.
        """
        ...

    async def before_release(self, lease: Lease, host: H) -> bool:
        """Do what must be done before a lease is released; False: it must stay for now."""
        ...

    def outcome(self, host: H) -> Outcome | None:
        """Return what became of the work of a host that is over; None: nothing can be said."""
        ...


class Reconciler(Generic[H]):
    """Passes over the hosts of one installation of a system."""

    def __init__(self, host_leases: HostLeases, system: System[H]) -> None:
        """Prepare to pass over the hosts of a system."""
        self._host_leases = host_leases
        self._system = system
        self._words = system.words
        self._log = system.log
        self._known = KnownHosts(host_leases.installation, are_unique=self._words.are_unique)
        self._unknown: set[str] = set()
        """Leases of which the log says that nobody can tell whose they are."""
        self._renewed: dict[str, float] = {}
        """When this process renewed each lease."""

    async def run_once(self) -> Picture[H]:
        """Make one pass. Raises HostSystemError, UnreachableError, RefusedError."""
        # The leases first: what is released must have been noted before the reading began.
        noted = await self._host_leases.working(self._words.system)
        hosts = await self._system.hosts()
        busy = {uuid for uuid, host in hosts.items() if self._needs(host)}
        self._known.look(hosts, noted)
        own = [lease for leases in noted.values() for lease in leases if self.governs(lease)]
        left: dict[str, list[Lease]] = {}
        released = 0
        for lease in own:
            uuid = str(host_of(lease))
            if await self._judged(lease, hosts.get(uuid)):
                released += 1
                continue
            left.setdefault(uuid, []).append(lease)
            await self._renew(lease)
        adopted, refused, uncounted = await self._adopt(
            {
                uuid: host
                for uuid, host in hosts.items()
                if uuid in busy and self._system.may_lack(host, noted.get(uuid, ()))
            }
        )
        adopted |= await self._adopt_late(
            [lease for uuid in busy for lease in left.get(uuid, ())], refused, uncounted
        )
        live = {lease.id for leases in left.values() for lease in leases}
        self._renewed = {one: at for one, at in self._renewed.items() if one in live}
        foreign = [one for leases in noted.values() for one in leases if not self.governs(one)]
        self._tell_unknown(foreign)
        return Picture(
            hosts,
            frozenset(busy),
            left,
            adopted=frozenset(adopted),
            released=released,
            refused=refused,
            uncounted=uncounted,
            units=units_of(own),
            foreign=foreign,
        )

    def _needs(self, host: H) -> bool:
        return self._system.occupation(host) is Occupation.NEEDS

    def governs(self, lease: Lease) -> bool:
        """Return whether a lease or ticket is of a host that is here, or was."""
        return self._known.has(lease)

    def _tell_unknown(self, foreign: Iterable[Lease]) -> None:
        """Log, once for each, which units nobody may ever release."""
        unknown = {one.id: one for one in foreign if installation_of(one) is None}
        for lease_id in unknown.keys() - self._unknown:
            self._log.warning(
                "the lease of %s %s is kept: %s never had this %s. If it was deleted, run"
                " `moorage lease revoke %s`",
                self._words.host,
                self._system.lease_name_of(unknown[lease_id]),
                self._words.installation,
                self._words.host,
                lease_id,
            )
        self._unknown = {*unknown}

    async def _judged(self, lease: Lease, listed: H | None) -> bool:
        """Release a lease if its work is over; one that Moorage refuses does not stop the pass."""
        busy = listed is not None and self._system.occupation(listed).keeps
        if not is_over_after_reading(work_state_of(lease), busy=busy):
            return False
        host = await self._system.confirmed(lease, listed)
        try:
            return await self._release(lease, host)
        except RefusedError as refusal:
            name = self._system.lease_name_of(lease)
            self._log.error(
                "cannot release the lease of %s %s: %s", self._words.host, name, refusal
            )
            return False

    async def _release(self, lease: Lease, host: H | None) -> bool:
        """Release the lease of a host whose work is over; return whether it was released."""
        state = work_state_of(lease)
        busy = host is not None and self._system.occupation(host).keeps
        if not is_over_after_reading(state, busy=busy):
            return False
        if host is not None:
            if not await self._system.before_release(lease, host):
                return False
            outcome = self._system.outcome(host)
            if state.begun and lease.outcome is None and outcome is not None:
                detail = label_text(outcome.detail)
                await self._host_leases.report(lease, outcome.result, detail)
        return await self._host_leases.release_after_reading(lease, busy=busy)

    async def _adopt(
        self, hosts: Mapping[str, H]
    ) -> tuple[set[str], dict[str, str], dict[str, set[str]]]:
        """Count hosts that are busy without all their units.

        Returns which are counted, why others are not (by UUID), and those by the pools.
        """
        if not hosts:
            return set(), {}, {}
        # Again: a unit may have been granted after the first look, and before the host was read.
        working = await self._host_leases.working(self._words.system)
        adopted: set[str] = set()
        refused: dict[str, str] = {}
        uncounted: dict[str, set[str]] = {}
        for uuid, host in hosts.items():
            leases = working.get(uuid, ())
            if not self._system.may_lack(host, leases):
                continue
            if (found := await self._system.lacking(host, leases)) is None:
                continue
            word, name = self._words.host, self._system.name_of(uuid, host)
            try:
                await self._count(name, found)
            except (RefusedError, EndedError, CrowdedError) as error:
                self._log.error("%s %s is busy, but cannot be counted: %s", word, name, error)
                refused[uuid] = str(error)
                for pool in found.units:
                    uncounted.setdefault(pool, set()).add(uuid)
            else:
                self._log.info("%s %s is %s: counted", word, name, found.doing)
                adopted.add(uuid)
        return adopted, refused, uncounted

    async def _count(self, name: str, found: Busy) -> None:
        """Give a host its units, without those of pools that there are not.

        A label of a host may name its pool: who writes it must not stop the hosts of others.
        """
        try:
            return await self._host_leases.adopt(found.host, found.units, beside=found.beside)
        except RefusedError as error:
            rest = {
                pool: units
                for pool, units in found.units.items()
                if await self._host_leases.has_pool(pool)
            }
            missing = {pool: found.units[pool] for pool in found.units.keys() - rest.keys()}
            if not (rest and missing):
                raise
            why = str(error)
        await self._host_leases.adopt(found.host, rest, beside=found.beside, lacks=missing)
        pools = ", ".join(sorted(missing))
        self._log.error("%s %s is not counted in %s: %s", self._words.host, name, pools, why)

    async def _adopt_late(
        self, leases: Iterable[Lease], refused: dict[str, str], uncounted: dict[str, set[str]]
    ) -> set[str]:
        """Count hosts in pools that did not exist when they were counted in others.

        Returns the counted hosts. Hosts that still cannot be counted are added to `refused` and
        `uncounted`.
        """
        adopted: set[str] = set()
        exist: dict[str, bool] = {}
        for found in leases:
            lease, uuid = found, str(host_of(found))
            for pool in lacks_of(lease):
                if pool not in exist:
                    exist[pool] = await self._host_leases.has_pool(pool)
                why = f"There is no pool '{pool}', or the token may not use it."
                if exist[pool]:
                    try:
                        lease = await self._host_leases.adopt_late(lease, pool)
                        adopted.add(uuid)
                        continue
                    except (RefusedError, EndedError, CrowdedError) as error:
                        why = str(error)
                refused.setdefault(uuid, why)
                uncounted.setdefault(pool, set()).add(uuid)
        return adopted

    async def _renew(self, lease: Lease) -> None:
        last = self._renewed.get(lease.id, float("-inf"))
        if lease.ttl is None or monotonic() - last < lease.ttl / RENEWALS:
            return
        try:
            await self._host_leases.renew(lease)
        except (RefusedError, UnreachableError) as error:
            self._log.debug("cannot renew lease %s: %s", lease.id, error)
            return
        self._renewed[lease.id] = monotonic()


def units_of(leases: Iterable[Lease]) -> Counter[str]:
    """Return the units of leases, by pool."""
    units: Counter[str] = Counter()
    for lease in leases:
        units.update({need.pool: need.units for need in lease.needs})
    return units
