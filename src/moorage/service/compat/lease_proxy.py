"""What a CI job's lease proxy does: wait for some units of a type, give them back by name.

A lease is made for all units at once, and waited for as long as the caller is there. Nobody renews
it: it lasts until it is given back, or for its pool's hold. Until its names are about to be told it
has a deadline, so that nothing is lost when the process ends before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from moorage.core.admission.compat import lease_proxy
from moorage.core.admission.facts import Changes, Facts, Keys
from moorage.core.admission.late_releases import OWNER
from moorage.core.admission.leases import Proof
from moorage.core.admission.model import Need
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.limits import PROXY_UNITS_MAX
from moorage.core.service_time import When
from moorage.service.access.audit import Actor
from moorage.service.admission.service import Admission, AskWanted
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import AdmissionCase

RETRY_SECONDS = 1.0

POLL_SECONDS = 10.0
"""How often a ticket says that its caller is there: well within its patience."""

SELF = Actor("lease proxy", None, "server")

log = logging.getLogger("moorage.lease_proxy")

Gone = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Confirm(AdmissionCase[list[str]]):
    """Let a lease last until it is given back. Answer: its names."""

    lease: LeaseId

    def keys(self) -> Keys:
        return Keys(leases={self.lease})

    def decide(self, facts: Facts, when: When) -> Changes:
        return lease_proxy.confirm(facts, when.moment, self.lease)

    def conclude(self, facts: Facts, when: When) -> list[str]:
        return lease_proxy.names_of(facts, facts.leases[self.lease])


@dataclass(slots=True)
class GiveBack(AdmissionCase[None]):
    """Give one unit back by its name; once more is nothing. Raises SLOT_NOT_FOUND."""

    name: str
    _lease: LeaseId | None = field(init=False)

    def __post_init__(self) -> None:
        self._lease = lease_proxy.lease_of(self.name)

    def keys(self) -> Keys:
        if self._lease is not None:
            return Keys(leases={self._lease})
        return Keys(slots={("", self.name)})

    def decide(self, facts: Facts, when: When) -> Changes:
        return lease_proxy.give_back(facts, when.moment, when.wall, self.name)

    def conclude(self, facts: Facts, when: When) -> None:
        """There is nothing to tell."""


class LeaseProxy:
    """Leases that last until they are given back by name."""

    def __init__(self, admission: Admission, transactor: Transactor) -> None:
        self._admission = admission
        self._transactor = transactor
        self._late: set[asyncio.Task[None]] = set()
        """Those that give back what nobody holds, until they can."""

    async def acquire(self, pool: str, count: int, seconds: float, gone: Gone) -> list[str] | None:
        """Wait for `count` units and return their names; None: the time is over.

        Args:
            pool: the type.
            count: all at once, or none.
            seconds: to wait at most.
            gone: ends when the caller has gone away; then nothing is held.

        Raises:
            Error: POOL_UNKNOWN, LIMIT_EXCEEDED, UNITS_ABOVE_LIMIT, QUEUE_FULL, UNAVAILABLE.
            CallerGoneError: there is nobody to be told.
        """
        leaving = asyncio.ensure_future(gone())
        try:
            return await self._waited(pool, count, seconds, leaving)
        finally:
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await leaving

    async def _waited(
        self, pool: str, count: int, seconds: float, leaving: "asyncio.Future[None]"
    ) -> list[str] | None:
        async def left() -> None:
            await asyncio.shield(leaving)

        now = asyncio.get_running_loop().time
        until = now() + seconds
        await self._check_count(pool, count)
        wanted = AskWanted(owner=OWNER, key=str(uuid4()), needs=(Need(pool, count),))
        view = await self._admission.ask(wanted, SELF)
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
                names = await self._transactor.submit_case(Confirm(lease))
                if not leaving.done():
                    return names
        except BaseException:
            await self._let_go(lease)
            raise
        await self._let_go(lease)
        if leaving.done():
            raise CallerGoneError
        return None

    async def _check_count(self, pool: str, count: int) -> None:
        """Raise LIMIT_EXCEEDED for too many units, but POOL_UNKNOWN if there is no such pool."""
        if count <= PROXY_UNITS_MAX:
            return
        try:
            await self._admission.pool(pool)
        except Error as error:
            if error.code is Code.POOL_NOT_FOUND:
                raise Error(Code.POOL_UNKNOWN, error.message) from None
            raise
        raise Error(Code.LIMIT_EXCEEDED, f"one request may acquire {PROXY_UNITS_MAX} units at most")

    async def _let_go(self, lease: LeaseId) -> None:
        """Leave nothing behind: what cannot be given back now is tried again and again.

        Once it is confirmed a lease has no deadline any more.
        """
        try:
            await self._admission.release(lease, Proof(OWNER))
        except Error as error:
            log.warning("lease %s is held by nobody; giving it back: %s", lease, error.message)
            task = asyncio.get_running_loop().create_task(self._let_go_at_last(lease))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _let_go_at_last(self, lease: LeaseId) -> None:
        try:
            while True:
                await asyncio.sleep(RETRY_SECONDS)
                try:
                    await self._admission.release(lease, Proof(OWNER))
                except Error as error:
                    if error.code != Code.LEASE_NOT_FOUND:
                        continue
                return
        except asyncio.CancelledError:
            log.error("lease %s is held by nobody; `moorage lease revoke` ends it", lease)
            raise

    async def release(self, names: Iterable[str]) -> None:
        """Give units back by name, in this order. Raises NotReleasedError at the first failure."""
        done: list[str] = []
        for name in names:
            try:
                await self._transactor.submit_case(GiveBack(name))
            except Error as error:
                raise NotReleasedError(name, error, done) from None
            done.append(name)


class CallerGoneError(Exception):
    """The caller went away while it waited; it holds nothing."""


class NotReleasedError(Exception):
    """One of several names could not be given back; those before it were."""

    def __init__(self, name: str, error: Error, done: list[str]) -> None:
        super().__init__(f"{name}: {error.message}")
        self.name = name
        self.reason = error.message
        self.code = error.code
        self.done = done
