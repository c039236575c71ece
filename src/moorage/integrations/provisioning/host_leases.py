"""The leases of hosts: by which a host has its units, asks for them and gives them back."""

import logging
from collections.abc import Collection, Mapping

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning import unit_release
from moorage.integrations.provisioning.hosts import ADOPTED, Host, host_of, key_part
from moorage.integrations.provisioning.pools import UNKNOWN, hold_refusal
from moorage.integrations.provisioning.unit_release import NotSentError, RequestOutcome
from moorage.integrations.provisioning.work_steps import (
    CHANGED,
    ENDED,
    GONE,
    CrowdedError,
    EndedError,
    WorkSteps,
    work_state_of,
)
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted, Pool
from moorage.wire.defaults import PRIORITY_MAX

REUSED = "key_reused"
"""Code of a refusal: the live lease with this key has other needs, labels or another patience."""

REPORTED = "outcome_told"
"""Code of a refusal: another outcome was reported before."""

UNUSABLE = (UNKNOWN, "forbidden")
"""Codes of refusals: there is no such pool, or the token may not use it."""

LACKS = "lacks"
"""Which units a host lacks because their pools do not exist; in the record of a lease."""

log = logging.getLogger("moorage.provisioning")


class OtherUnitsError(Exception):
    """The host works with other units than it asks for: that work must end first."""

    def __init__(self, lease: Lease) -> None:
        super().__init__("it holds other units: its earlier work must end first")
        self.lease = lease


def lacks_of(lease: Lease) -> dict[str, int]:
    """Return the units that a host lacks because there were no such pools, by pool."""
    return dict((lease.record or {}).get(LACKS, {}))


def _covers(lease: Lease, needs: Mapping[str, int]) -> bool:
    has = {need.pool: need.units for need in lease.needs}
    return all(has.get(pool, 0) >= wanted for pool, wanted in needs.items())


class HostLeases:
    """The leases of hosts. Every call raises UnreachableError and RefusedError."""

    def __init__(self, api: LeaseApi, installation: str | None = None) -> None:
        """Use the leases of a server.

        `installation` is a name that tells hosts of this one, such as an Ironic, from hosts of
        others in the same pools: leases get it as a label, whose name is the system's.
        """
        self._api = api
        self.installation = installation
        self.steps = WorkSteps(api)

    async def working(self, system: str) -> dict[str, list[Lease]]:
        """Return the leases by which hosts of a system have units, by the UUID of the host."""
        return await self._by_host(system, "granted")

    async def in_line(self, system: str) -> dict[str, list[Lease]]:
        """Return the tickets of hosts of a system that wait, by the UUID of the host."""
        return await self._by_host(system, "waiting")

    async def past(self, system: str) -> dict[str, list[Lease]]:
        """Return the leases of hosts that have ended and are still kept, oldest first."""
        return await self._by_host(system, "ended")

    async def _by_host(self, system: str, state: str) -> dict[str, list[Lease]]:
        found: dict[str, list[Lease]] = {}
        # Not by the prefix of the keys: the server would read all leases that have ended, too.
        async for lease in self._api.leases(state=state):
            uuid = host_of(lease)
            if uuid is not None and lease.key.startswith(f"{system}/"):
                found.setdefault(uuid, []).append(lease)
        return found

    async def current(
        self, host: Host, needs: Mapping[str, int], *, forced: bool, verb: str | None = None
    ) -> Lease | None:
        """Return a lease by which a host has at least these units; None: there is none.

        Args:
            host: the host.
            needs: the units.
            forced: also a forced lease, perhaps over the limit. Work that must wait for its turn
                cannot use one.
            verb: only the lease of this verb.
        """
        async for lease in self._api.leases(state="granted", key_prefix=host.keys):
            if verb is not None and lease.key != f"{host.keys}{verb}":
                continue
            if _covers(lease, needs) and (forced or not lease.forced):
                return lease
        return None

    async def has_other(self, host: Host, lease: Lease) -> bool:
        """Return whether a host works by another lease than this one."""
        found = self._api.leases(state="granted", key_prefix=host.keys)
        return any([one.id != lease.id and bool(one.record_version) async for one in found])

    async def waiting(self, host: Host, verb: str) -> Lease | None:
        """Return the ticket of a host for a verb; None: it has none."""
        key = f"{host.keys}{verb}"
        async for lease in self._api.leases(state="waiting", key_prefix=key):
            if lease.key == key:
                return lease
        return None

    async def ask(
        self,
        host: Host,
        verb: str,
        needs: Mapping[str, int],
        *,
        wait: float,
        patience: float,
        force: bool = False,
        beside: bool = False,
    ) -> Lease:
        """Ask for the units of a host, and wait for them; returns a lease or a ticket.

        A ticket that waits for the same needs keeps its place, whatever else has changed. One with
        other needs (a rule or the host has changed), or that waits although the units are to be had
        by force, is withdrawn.

        `beside`: the host has leases for other verbs, and keeps them. So it goes before all that
        have none: they may wait for its units, and those that wait for several pools reserve.

        Raises OtherUnitsError: the host has a lease, but not with these units.
        """
        lease = await self._asked(host, verb, needs, wait, patience, force=force, beside=beside)
        if lease.hold is not None and not force:
            await self.give_back(lease, requeue=False)
            raise hold_refusal(needs)
        return lease

    async def _asked(
        self,
        host: Host,
        verb: str,
        needs: Mapping[str, int],
        wait: float,
        patience: float,
        *,
        force: bool,
        beside: bool,
    ) -> Lease:
        own = {} if self.installation is None else {host.system: self.installation}
        wanted = LeaseWanted(
            needs=[NeedWanted(pool=pool, units=units) for pool, units in sorted(needs.items())],
            key=f"{host.keys}{verb}",
            labels={**host.labels, **own},
            patience=patience,
            priority=await self._highest_priority(needs) if beside and not force else 0,
            force=force,
            pull=not force,
            reopen=True,
        )
        try:
            return await self._api.ask(wanted, wait)
        except RefusedError as refusal:
            if refusal.code != REUSED:
                raise
        only = verb if beside else None
        if (lease := await self.current(host, needs, forced=force, verb=only)) is not None:
            return lease
        if (lease := await self.current(host, {}, forced=force, verb=only)) is not None:
            raise OtherUnitsError(lease)
        ticket = await self.waiting(host, verb)
        same = ticket is not None and {need.pool: need.units for need in ticket.needs} == needs
        if ticket is not None and same and not force:
            return await self._api.lease(ticket.id, wait)
        if ticket is not None:
            await self._api.release(ticket.id)
        return await self._api.ask(wanted, wait)

    async def _highest_priority(self, pools: Collection[str]) -> int:
        """Return the highest priority that all these pools permit."""
        limits = [(await self._api.pool(name)).priority_max for name in pools]
        return min([PRIORITY_MAX, *(limit for limit in limits if limit is not None)])

    async def adopt(
        self,
        host: Host,
        needs: Mapping[str, int],
        *,
        beside: str = "",
        lacks: Mapping[str, int] | None = None,
    ) -> None:
        """Give a host that is found busy its units, over the limit if necessary.

        `beside`: for what it needs them, beside the units that it has. `lacks`: units of pools that
        do not exist; `adopt_late` gives them.

        Raises EndedError, CrowdedError.
        """
        verb, more = f"{beside}/{ADOPTED}".lstrip("/"), bool(beside)
        try:
            lease = await self.ask(
                host, verb, needs, wait=0.0, patience=60.0, force=True, beside=more
            )
        except OtherUnitsError as other:
            lease = other.lease
        members = {LACKS: dict(lacks)} if lacks else {}
        await self.steps.take(lease, unit_release.found_busy, members)

    async def adopt_late(self, lease: Lease, pool: str) -> Lease:
        """Give a host the units of a pool that did not exist when its lease was adopted.

        Returns that lease as it is then.

        Raises EndedError, CrowdedError.
        """
        lacks = lacks_of(lease)
        host = Host(lease.key.partition("/")[0], str(host_of(lease)), lease.labels)
        await self.adopt(host, {pool: lacks.pop(pool)}, beside=key_part([pool]))
        return await self.steps.take(lease, unit_release.found_busy, {LACKS: lacks})

    async def has_pool(self, name: str) -> bool:
        """Return whether there is a pool that may be used."""
        return await self._pool(name) is not None

    async def limit_of(self, name: str) -> int:
        """Return how many units of a pool can be granted; 0: it is paused, or cannot be used."""
        pool = await self._pool(name)
        if pool is None or pool.paused:
            return 0
        return min(pool.units, pool.quota or pool.units)

    async def _pool(self, name: str) -> Pool | None:
        """Return a pool that may be used; None: there is none."""
        try:
            return await self._api.pool(name)
        except RefusedError as refusal:
            if refusal.code not in UNUSABLE:
                raise
            return None

    async def renew(self, lease: Lease) -> None:
        """Show that a process governs the host of a lease."""
        await self._api.renew(lease.id)

    async def settle(
        self, lease: Lease, request: str, outcome: RequestOutcome, *, requeue: bool
    ) -> None:
        """Store the answer to a request, and release the unit if all requests were refused.

        If Moorage cannot store it, the unit stays until a reading shows that the host is idle.

        Args:
            lease: as it was when the request was sent.
            request: its id.
            outcome: what the answer says.
            requeue: the host wants to try again soon, and keeps its place in line.
        """
        try:
            lease = await self.steps.take(
                lease, lambda state: unit_release.answered(state, request, outcome)
            )
            if unit_release.is_over_after_answer(work_state_of(lease)):
                await self._release(lease, lease.record_version, requeue=requeue)
        except (UnreachableError, UndecodableError, RefusedError) as error:
            log.warning("cannot store the answer to request %s: %s", request, error)
        except (EndedError, CrowdedError, NotSentError) as error:
            log.warning("cannot store the answer to request %s: %s", request, error)

    async def give_back(self, lease: Lease, *, requeue: bool) -> None:
        """Release a unit for which no request was sent, or withdraw a ticket.

        `requeue`: the host wants to try again soon, and keeps its place in line.
        """
        await self._release(lease, 0, requeue=requeue)

    async def _release(self, lease: Lease, version: int, *, requeue: bool) -> None:
        """Release a lease unless it has ended, or its record has another version."""
        try:
            if requeue and not lease.forced:
                await self._api.requeue(lease.id, lease.key, version)
            else:
                await self._api.release(lease.id, version)
        except RefusedError as refusal:
            if refusal.code not in (CHANGED, ENDED, GONE):
                raise

    async def report(self, lease: Lease, result: str, detail: str) -> None:
        """Report what became of the work: ok or failed; the first report counts."""
        try:
            await self._api.outcome(lease.id, result, detail)
        except RefusedError as refusal:
            if refusal.code not in (REPORTED, GONE):
                raise

    async def release_after_reading(self, noted: Lease, *, busy: bool) -> bool:
        """Release the unit if a reading proves that the host no longer works.

        `noted` is the lease as it was before the reading began. Returns whether it was released.
        """
        if not unit_release.is_over_after_reading(work_state_of(noted), busy=busy):
            return False
        try:
            await self._api.release(noted.id, noted.record_version)
        except RefusedError as refusal:
            if refusal.code not in (CHANGED, GONE):
                raise
            return False
        return True
