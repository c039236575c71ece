"""The leases of hosts: by which a host has its units, with the steps of its work in the record.

`unit_release.py` decides; here its steps are read and written. Any number of processes may work for
the same host: each step replaces a version, and the second one reads again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning import unit_release
from moorage.integrations.provisioning.hosts import ADOPTED, Host, host_of
from moorage.integrations.provisioning.unit_release import NotSentError, RequestOutcome, WorkState
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted

SENT_MAX = 30
"""Requests of one lease that may be without an answer at the same time."""

TRIES_MAX = 20
"""How often a step is tried again because another process has taken one."""

PRIORITY_MAX = 1_000_000
"""The highest priority that Moorage knows."""

AGAIN_SECONDS = unit_release.WIRE_GRACE_SECONDS / 3
"""How often a request that is still under way is stored again as sent."""

ENDED, CHANGED, GONE = "lease_ended", "record_changed", "lease_not_found"
"""Codes of refusals: the lease has ended, its record has another version, it is forgotten."""

REUSED = "key_reused"
"""Code of a refusal: the live lease with this key has other needs, labels or another patience."""

HOLDS = "pool_has_hold"
"""Code of a refusal by this module: a unit of the pool would be free while its host works."""

REPORTED = "outcome_told"
"""Code of a refusal: another outcome was reported before."""

Step = Callable[[WorkState], WorkState]

log = logging.getLogger("moorage.provisioning")


class EndedError(Exception):
    """The lease has ended, so its unit may belong to another host: ask again."""


class OtherUnitsError(Exception):
    """The host works with other units than it asks for: that work must end first."""

    def __init__(self, lease: Lease) -> None:
        super().__init__("it has other units: its earlier work must end first")
        self.lease = lease


class CrowdedError(Exception):
    """Too many requests of the host are without an answer."""


class TakenError(Exception):
    """Another process has sent a request for this lease already."""


def work_state_of(lease: Lease) -> WorkState:
    """Return the steps that the record of a lease has."""
    record = lease.record or {}
    return WorkState(
        version=lease.record_version,
        age=lease.record_age or 0.0,
        sent=frozenset(record.get("sent", ())),
        begun=bool(record.get("begun", False)),
    )


def _covers(lease: Lease, needs: Mapping[str, int]) -> bool:
    has = {need.pool: need.units for need in lease.needs}
    return all(has.get(pool, 0) >= wanted for pool, wanted in needs.items())


def _members(state: WorkState) -> dict[str, Any]:
    """Return what the record of a lease says of the steps; other members of it stay."""
    return {"sent": sorted(state.sent), "begun": state.begun}


class HostLeases:
    """The leases of hosts. Every call raises UnreachableError and RefusedError."""

    def __init__(self, api: LeaseApi, installation: str | None = None) -> None:
        """Use the leases of a server.

        `installation` is a name that tells hosts of this one, such as an Ironic, from hosts of
        others in the same pools: leases get it as a label, whose name is the system's.
        """
        self._api = api
        self.installation = installation

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
            forced: also one that was forced, perhaps over the limit. What must wait for its turn
                cannot use it.
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
            pools = " and ".join(sorted(needs))
            raise RefusedError(
                409,
                HOLDS,
                f"leases of {pools} end by themselves while hosts still work: run"
                " `moorage pool change NAME --hold none`",
                "",
            )
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

    async def adopt(self, host: Host, needs: Mapping[str, int], *, beside: str = "") -> None:
        """Give a host that is found busy its units, over the limit if necessary.

        `beside`: for what it needs them, beside the units that it has.
        """
        verb, more = f"{beside}/{ADOPTED}".lstrip("/"), bool(beside)
        try:
            lease = await self.ask(
                host, verb, needs, wait=0.0, patience=60.0, force=True, beside=more
            )
        except OtherUnitsError as other:
            lease = other.lease
        await self._step(lease, unit_release.found_busy)

    async def has_pool(self, name: str) -> bool:
        """Return whether there is a pool that may be used."""
        try:
            await self._api.pool(name)
        except RefusedError:
            return False
        return True

    async def renew(self, lease: Lease) -> None:
        """Show that a process governs the host of a lease."""
        await self._api.renew(lease.id)

    async def sent(self, lease: Lease, request: str) -> Lease:
        """Store that a request is about to be sent. Raises EndedError, CrowdedError."""

        def step(state: WorkState) -> WorkState:
            found = unit_release.sent(state, request)
            if len(found.sent) > SENT_MAX:
                raise CrowdedError
            return found

        return await self._step(lease, step)

    async def sent_first(self, lease: Lease, request: str, marks: Mapping[str, Any]) -> Lease:
        """Store that the first request of a lease is about to be sent, with marks in its record.

        Raises TakenError: another process was first. EndedError: the lease has ended.
        """
        state = unit_release.sent(WorkState(), request)
        record = {**marks, **_members(state)}
        try:
            return await self._api.record_put(lease.id, record, 0)
        except RefusedError as refusal:
            if refusal.code in (ENDED, GONE):
                raise EndedError from None
            if refusal.code != CHANGED:
                raise
            raise TakenError from None

    @asynccontextmanager
    async def under_way(self, lease: Lease, request: str) -> AsyncIterator[None]:
        """Store again and again that a request is under way, as long as this is entered.

        It may wait in a queue for longer than a request without an answer is believed to.
        """

        async def again() -> None:
            latest = lease
            while True:
                await asyncio.sleep(AGAIN_SECONDS)
                try:
                    latest = await self._step(
                        latest, lambda state: unit_release.sent(state, request)
                    )
                except (UnreachableError, UndecodableError, RefusedError, CrowdedError) as error:
                    log.warning("request %s is under way, which is not stored: %s", request, error)
                except EndedError:
                    return

        task = asyncio.create_task(again())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

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
            lease = await self._step(
                lease, lambda state: unit_release.answered(state, request, outcome)
            )
            if unit_release.is_over_after_answer(work_state_of(lease)):
                await self._release(lease, lease.record_version, requeue=requeue)
        except (UnreachableError, UndecodableError, RefusedError) as error:
            log.warning("the answer to request %s is not stored: %s", request, error)
        except (EndedError, CrowdedError, NotSentError) as error:
            log.warning("the answer to request %s is not stored: %r", request, error)

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

    async def _step(self, lease: Lease, step: Step) -> Lease:
        """Take a step, and again from a newer record if another process was faster."""
        for _ in range(TRIES_MAX):
            state: WorkState = step(work_state_of(lease))
            if state.version == lease.record_version:
                return lease
            record = {**(lease.record or {}), **_members(state)}
            try:
                return await self._api.record_put(lease.id, record, lease.record_version)
            except RefusedError as refusal:
                if refusal.code in (ENDED, GONE):
                    raise EndedError from None
                if refusal.code != CHANGED:
                    raise
            lease = await self._api.lease(lease.id)
        raise CrowdedError
