"""The lease proxy of CI jobs: waits for units of a type, and releases them by name.

All units of a request are one lease, waited for as long as the caller is connected. It is never
renewed: it lasts until it is released, or for its pool's hold or `proxy_ttl`. Like any grant it
must be confirmed: the caller has read the names. So no units are lost if it is gone before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

from moorage.core.admission.compat import lease_proxy
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Lease, Need
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.labels import cut_to_fit
from moorage.core.limits import PROXY_UNITS_MAX
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.service import Admission
from moorage.service.audit_entries import Actor
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World

RETRY_SECONDS = 1.0

POLL_SECONDS = 10.0
"""How often a ticket is polled while its caller is connected: well within its patience."""

SELF = Actor("lease proxy", None, "server")

log = logging.getLogger("moorage.lease_proxy")

Gone = Callable[[], Awaitable[None]]


class Acquired(NamedTuple):
    """The names of the units of a lease, which is to be confirmed once they are read."""

    lease: Lease
    names: list[str]


@dataclass(slots=True)
class GiveBack(UseCase[None]):
    """Release one unit by its name; repeating it does nothing. Raises SLOT_NOT_FOUND."""

    name: str
    _lease: LeaseId | None = field(init=False)

    def __post_init__(self) -> None:
        self._lease = lease_proxy.lease_of(self.name)

    def keys(self) -> Keys:
        if self._lease is not None:
            return Keys(admission=AdmissionKeys(leases={self._lease}))
        return Keys(admission=AdmissionKeys(slots={("", self.name)}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        return Changes(admission=lease_proxy.give_back(facts, when.moment, when.wall, self.name))

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


class LeaseProxy:
    """Leases that last until they are released by name."""

    def __init__(self, admission: Admission, transactor: Transactor) -> None:
        self._admission = admission
        self._transactor = transactor
        self._late: set[asyncio.Task[None]] = set()
        """Tasks that keep trying to release leases without a holder."""

    async def acquire(
        self,
        pool: str,
        count: int,
        seconds: float,
        gone: Gone,
        labels: Mapping[str, str] | None = None,
    ) -> Acquired | None:
        """Wait for `count` units and return their names; None after a timeout.

        Call `Admission.confirmations.expect` with the lease before the names are sent.

        Args:
            pool: the type.
            count: number of units, granted all at once or not at all.
            seconds: the longest wait.
            gone: returns when the caller has disconnected; then no units stay occupied.
            labels: of the lease; values that are not valid are cut.

        Raises:
            Error: POOL_UNKNOWN, LIMIT_EXCEEDED, UNITS_ABOVE_LIMIT, QUEUE_FULL, UNAVAILABLE.
            CallerGoneError: the caller has disconnected.
        """
        request = LeaseRequest(
            owner=LEASE_PROXY,
            key=str(uuid4()),
            needs=(Need(pool, count),),
            labels=cut_to_fit(labels or {}),
            attended=True,
        )
        leaving = asyncio.ensure_future(gone())
        try:
            await self._check_count(pool, count)
            return await self._waited(request, seconds, leaving)
        finally:
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await leaving

    async def _waited(
        self, request: LeaseRequest, seconds: float, leaving: "asyncio.Future[None]"
    ) -> Acquired | None:
        async def left() -> None:
            await asyncio.shield(leaving)

        now = asyncio.get_running_loop().time
        until = now() + seconds
        view = await self._admission.acquire(request, SELF)
        lease = view.lease.id
        try:
            while view.lease.state == "waiting" and not leaving.done():
                begun = now()
                pause = min(until - begun, POLL_SECONDS)
                if pause <= 0:
                    break
                view = await self._admission.waited(lease, pause, left)
                early = now() - begun < pause / 2
                if early and view.lease.state == "waiting" and not leaving.done():
                    raise Error(Code.UNAVAILABLE, "the service is shutting down")
            if view.lease.state == "granted" and not leaving.done():
                return Acquired(view.lease, lease_proxy.names_of(view.lease))
        except BaseException:
            await self._release(lease)
            raise
        await self._release(lease, gave_up=not leaving.done())
        if leaving.done():
            raise CallerGoneError
        return None

    async def _check_count(self, pool: str, count: int) -> None:
        """Raise LIMIT_EXCEEDED for too many units, or POOL_UNKNOWN if there is no such pool."""
        if count <= PROXY_UNITS_MAX:
            return
        try:
            await self._admission.queries.pool(pool)
        except Error as error:
            if error.code is Code.POOL_NOT_FOUND:
                raise Error(Code.POOL_UNKNOWN, error.message) from None
            raise
        raise Error(Code.LIMIT_EXCEEDED, f"one request may acquire {PROXY_UNITS_MAX} units at most")

    async def _release(self, lease: LeaseId, *, gave_up: bool = False) -> None:
        """Release a lease; if that fails, keep trying in the background."""
        try:
            await self._admission.change(LeaseRelease(lease, Proof(LEASE_PROXY), gave_up=gave_up))
        except Error as error:
            log.warning(
                "cannot release lease %s, which no client knows; trying again: %s",
                lease,
                error.message,
            )
            task = asyncio.get_running_loop().create_task(self._let_go_at_last(lease))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _let_go_at_last(self, lease: LeaseId) -> None:
        try:
            while True:  # no `Loop`: it ends once the lease is released
                await asyncio.sleep(RETRY_SECONDS)
                try:
                    await self._admission.change(LeaseRelease(lease, Proof(LEASE_PROXY)))
                except Error as error:
                    if error.code != Code.LEASE_NOT_FOUND:
                        continue
                return
        except asyncio.CancelledError:
            log.error(
                "lease %s was not released, and no client knows it: run `moorage lease revoke`",
                lease,
            )
            raise

    async def release(self, names: Iterable[str]) -> None:
        """Release units by name, in this order. Raises NotReleasedError at the first failure."""
        done: list[str] = []
        for name in names:
            try:
                await self._transactor.submit(GiveBack(name))
            except Error as error:
                raise NotReleasedError(name, error, done) from None
            done.append(name)


class CallerGoneError(Exception):
    """The caller disconnected while it waited; no units stay occupied."""


class NotReleasedError(Exception):
    """One of several names could not be released; those before it were."""

    def __init__(self, name: str, error: Error, done: list[str]) -> None:
        super().__init__(f"{name}: {error.message}")
        self.name = name
        self.reason = error.message
        self.code = error.code
        self.done = done
