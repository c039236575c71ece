"""The steps of the work of a host, read and written in the record of its lease.

`unit_release.py` says what they mean. Any number of processes may work for the same host: each step
replaces a version, and the second one reads again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning import unit_release
from moorage.integrations.provisioning.unit_release import WorkState
from moorage.wire.admission import Lease

SENT_MAX = 30
"""Requests of one lease that may be without an answer at the same time."""

TRIES_MAX = 20
"""How often a step is tried again because another process has taken one."""

AGAIN_SECONDS = unit_release.WIRE_GRACE_SECONDS / 3
"""How often a request that is still under way is stored again as sent."""

ENDED, CHANGED, GONE = "lease_ended", "record_changed", "lease_not_found"
"""Codes of refusals: the lease has ended, its record has another version, it is forgotten."""

Step = Callable[[WorkState], WorkState]

log = logging.getLogger("moorage.provisioning")


class EndedError(Exception):
    """The lease has ended, so its unit may belong to another host: ask again."""

    def __init__(self) -> None:
        super().__init__("its lease ended in the meantime")


class CrowdedError(Exception):
    """Too many requests of the host are without an answer."""

    def __init__(self) -> None:
        super().__init__("too many requests for the host have no answer yet")


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


def _members(state: WorkState) -> dict[str, Any]:
    """Return what the record of a lease says of the steps; other members of it stay."""
    return {"sent": sorted(state.sent), "begun": state.begun}


class WorkSteps:
    """Steps of the work of hosts. Every call raises UnreachableError and RefusedError."""

    def __init__(self, api: LeaseApi) -> None:
        """Use the leases of a server."""
        self._api = api

    async def sent(self, lease: Lease, request: str) -> Lease:
        """Store that a request is about to be sent. Raises EndedError, CrowdedError."""

        def step(state: WorkState) -> WorkState:
            found = unit_release.sent(state, request)
            if len(found.sent) > SENT_MAX:
                raise CrowdedError
            return found

        return await self.take(lease, step)

    async def sent_first(self, lease: Lease, request: str, marks: Mapping[str, Any]) -> Lease:
        """Store that the first request of a lease is about to be sent, with marks in its record.

        Raises TakenError: another process was first. EndedError: the lease has ended.
        """
        state = unit_release.sent(WorkState(), request)
        record = {**marks, **_members(state)}
        if (stored := await self._stored(lease, record, 0)) is None:
            raise TakenError
        return stored

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
                    latest = await self.take(
                        latest, lambda state: unit_release.sent(state, request)
                    )
                except (UnreachableError, UndecodableError, RefusedError, CrowdedError) as error:
                    log.warning("cannot store that request %s was sent: %s", request, error)
                except EndedError:
                    return

        task = asyncio.create_task(again())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def take(
        self, lease: Lease, step: Step, members: Mapping[str, Any] | None = None
    ) -> Lease:
        """Take a step, and again from a newer record if another process was faster.

        `members` of the record are replaced.

        Raises EndedError, CrowdedError.
        """
        for _ in range(TRIES_MAX):
            state: WorkState = step(work_state_of(lease))
            if state.version == lease.record_version:
                return lease
            record = {**(lease.record or {}), **(members or {}), **_members(state)}
            stored = await self._stored(lease, record, lease.record_version)
            if stored is not None:
                return stored
            lease = await self._api.lease(lease.id)
        raise CrowdedError

    async def _stored(self, lease: Lease, record: Mapping[str, Any], version: int) -> Lease | None:
        """Store a record; None: another process has stored one. Raises EndedError."""
        try:
            return await self._api.record_put(lease.id, record, version)
        except RefusedError as refusal:
            if refusal.code == CHANGED:
                return None
            if refusal.code in (ENDED, GONE) or await self._waits_again(lease):
                raise EndedError from None
            raise

    async def _waits_again(self, lease: Lease) -> bool:
        """Return whether a grant was taken back because nobody had confirmed it in time."""
        try:
            return (await self._api.lease(lease.id)).state == "waiting"
        except RefusedError:
            return False
