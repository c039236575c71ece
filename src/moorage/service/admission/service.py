"""Admission: the operations on pools, leases and waiting lines that faces may call."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import structs

from moorage.core.admission.bars import is_watched, kept_until
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease, Pool
from moorage.core.admission.requests import LeaseRequest
from moorage.core.clock import DAY, SECOND, Instant
from moorage.core.errors import Error
from moorage.core.ids import LeaseId
from moorage.core.limits import OUTCOMES_KEPT_DAYS, PAGE_MAX
from moorage.core.service_time import When
from moorage.service.access.roles import standing
from moorage.service.admission.calendars import Calendars
from moorage.service.admission.capacity_retry import CapacityRetry
from moorage.service.admission.confirmations import Confirmations, TicketsLeft
from moorage.service.admission.counters import PoolCounters
from moorage.service.admission.ended import EndedKept, EndedLeases
from moorage.service.admission.ending import OwnerClearing
from moorage.service.admission.lease_cases import (
    LeaseAcquire,
    LeaseCase,
    LeaseLeave,
    LeasePoll,
    identified,
)
from moorage.service.admission.lease_log import LeaseLog
from moorage.service.admission.member_limits import MemberLimits
from moorage.service.admission.past import PoolPast, report_turns
from moorage.service.admission.pool_cases import PoolCase
from moorage.service.admission.queries import AdmissionQueries, pools_all
from moorage.service.admission.slots import Slots
from moorage.service.admission.sweeper import Sweeper
from moorage.service.admission.views import LeaseView, PoolView
from moorage.service.admission.waiters import Waiters, either
from moorage.service.audit_entries import Actor
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.feed.bell import Bell
from moorage.service.feed.followers import Followers
from moorage.store.admission import save
from moorage.store.api import Engine

ENDED_KEPT = EndedKept()

FORGET_MAX = 500
"""Leases that are deleted in one transaction."""


class Admission:
    """Pools, leases and tickets of one service. Every method raises `Error`."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        bell: Bell,
        followers: Followers[Changes],
        service_clock: ServiceClock,
        ended_kept: EndedKept = ENDED_KEPT,
    ) -> None:
        self.ended = EndedLeases(engine, ended_kept)
        """How many leases that have ended are kept, and how large they are."""
        self._engine = engine
        self._service_clock = service_clock
        self._transactor = transactor
        pasts = report_turns()
        self.queries = AdmissionQueries(engine, service_clock, self.ended, pasts)
        """Reads of pools and leases; none of them is a poll."""
        self.past = PoolPast(engine, service_clock, self.ended, pasts)
        self.slots = Slots(engine, service_clock)
        self.calendars = Calendars(engine, service_clock, transactor)
        self.owners = OwnerClearing(engine, transactor)
        self._capacity_retry = CapacityRetry(transactor, self.queries, bell)
        self.waiting = Waiters()
        self.tally = PoolCounters()
        self.member_limits = MemberLimits(engine, transactor, service_clock)
        self.confirmations = Confirmations(transactor, shared=engine.shared)
        self.sweeper = Sweeper(transactor, self.queries, shared=engine.shared)
        self._followers = followers
        followers.add(
            transactor.misfits.follow,
            self.queries.note,
            self._capacity_retry.note,
            self.waiting.note,
            self.tally.note,
            self.sweeper.note,
        )
        self._log = LeaseLog()
        transactor.follow(self.tally.count)
        transactor.follow(self._log.note)

    async def start(self) -> None:
        """Start to follow commits and to end due leases and tickets. Raises `Error`."""
        pools: dict[str, Pool | None] = {**await pools_all(self._engine)}
        now = await self.queries.now()
        self.tally.note(Changes(pools=pools), now)
        await self.ended.forgettable(now.moment.at)  # so that reports say what they cover
        await self.look_at_pools()
        if self._engine.shared:
            self._followers.start(self._reload)
        else:
            await self._left_at_restart()
        self.sweeper.start()
        self.member_limits.start()
        self._capacity_retry.start()

    async def _left_at_restart(self) -> None:
        """Note that no request waits any more: this is the only process, and it has just begun.

        The clients that are still there have a moment to ask again.
        """
        after: tuple[int, str] | None = (0, "")
        while after is not None:
            page = await self.queries.tickets(after, PAGE_MAX)
            if page:
                await self._transactor.submit(TicketsLeft([one.id for one in page]))
            after = (page[-1].arrival, page[-1].id) if len(page) == PAGE_MAX else None

    async def _reload(self) -> tuple[Changes, When]:
        """Return the current state for followers that may have missed changes, and the time."""
        pools: dict[str, Pool | None] = dict.fromkeys(self.tally.pools)
        self._capacity_retry.reload()
        pools |= await pools_all(self._engine)
        leases: dict[LeaseId, Lease | None] = dict.fromkeys(self.waiting.expected)
        leases |= {one.id: one for one in await self.queries.leases_of([*leases])}
        state = Changes(pools=pools, leases=leases)
        return state, await self.queries.now()

    def close(self) -> None:
        """End all waits: their requests are answered with the current state."""
        self.waiting.close()
        self._log.close()

    async def stop(self) -> None:
        """Stop what `start` has started."""
        self.close()
        await self.confirmations.stop()
        await self._followers.stop()
        await self._capacity_retry.stop()
        await self.sweeper.stop()
        await self.member_limits.stop()

    async def forget(self) -> int:
        """Delete leases that ended long ago, with their keys, and old outcomes; return how many."""
        now = (await self.queries.now()).moment.at
        ended = await self.ended.forgettable(now)
        reported = Instant(now - OUTCOMES_KEPT_DAYS * DAY)
        total = 0
        while True:
            plan = RunPlan(lambda: save.forget(ended, reported, FORGET_MAX))
            gone = await self._transactor.submit(plan)
            total += gone
            if gone < FORGET_MAX:
                return total

    async def look_at_pools(self) -> None:
        """Update the metrics that change without any commit: unheard leases, and ages."""
        self.tally.unheard = await self.queries.unheard()
        self.tally.oldest = await self.queries.oldest()

    async def change_pool(self, case: PoolCase) -> PoolView:
        """Execute a case of a pool that stays; return the pool."""
        await self._transactor.submit(case)
        return await self.queries.pool(case.name)

    async def change(self, case: LeaseCase) -> LeaseView:
        """Execute a case of a lease; return the lease, with its place in line if it waits."""
        view = await self._placed(await self._transactor.submit(case))
        if view.lease.state == "ended":
            self.confirmations.ended(view.lease.id)
        return view

    async def acquire(
        self,
        request: LeaseRequest,
        by: Actor,
        seconds: float = 0.0,
        gone: Callable[[], Awaitable[None]] | None = None,
    ) -> LeaseView:
        """Request units and wait up to `seconds` for them; the ticket continues to wait after."""
        case = LeaseAcquire(
            LeaseId(""),
            request=identified(request, standing(by.role)),
            wait=_micro(seconds),
            asker=by,
            others=self.waiting.until_of,
            elsewhere=self._elsewhere,
        )
        known = await self._transactor.submit(case)
        self._heard(known.lease, case.kept)
        return await self._seen(known, case.until, seconds, gone, case.kept)

    async def waited(
        self,
        lease: LeaseId,
        seconds: float,
        gone: Callable[[], Awaitable[None]] | None = None,
        *,
        scan: bool = False,
    ) -> LeaseView:
        """Return a lease; if it is a waiting ticket, wait up to `seconds` for its grant or end.

        This counts as a poll; `scan`: of a pull ticket or a forced one, which may be granted by it.
        If the caller disconnects meanwhile, the ticket survives for its patience. Raises
        LEASE_NOT_FOUND.
        """
        case = LeasePoll(
            lease,
            wait=_micro(seconds),
            scan=scan,
            others=self.waiting.until_of,
            elsewhere=self._elsewhere,
        )
        known = await self._transactor.submit(case)
        self._heard(known.lease, case.kept)
        return await self._seen(known, case.until, seconds, gone, case.kept)

    async def until_ended(
        self,
        lease: LeaseId,
        seconds: float,
        gone: Callable[[], Awaitable[None]] | None = None,
        *,
        or_stop: bool = False,
    ) -> LeaseView:
        """Return a lease when it has ended, or its state after `seconds`.

        `or_stop`: also when its holder is asked to stop. This is not a poll, and writes nothing.
        Raises LEASE_NOT_FOUND.
        """
        future = self.waiting.expect_end(lease, or_stop=or_stop)
        try:
            view = await self.queries.lease(lease)
            stops = or_stop and view.lease.stop_until is not None
            if view.lease.state == "ended" or stops or seconds <= 0:
                return view
            await either(future, seconds, gone)
        finally:
            self.waiting.forget_end(lease, future)
        return await self.queries.lease(lease)

    def _elsewhere(self, ticket: Lease, when: When) -> Instant | None:
        """Return the deadline of a ticket because of clients that wait at other processes."""
        until = ticket.heard_until
        if not (self._engine.shared and is_watched(ticket) and ticket.state == "waiting"):
            return None
        if until is None:
            return None
        theirs = self.waiting.elsewhere_of(ticket.id, until)
        return theirs if theirs is not None and theirs > kept_until(when.moment, ticket) else None

    def _heard(self, ticket: Lease, elsewhere: Instant | None) -> None:
        until = ticket.heard_until
        if self._engine.shared and ticket.state == "waiting" and until is not None:
            self.waiting.hear(ticket.id, until, elsewhere)

    async def _placed(self, known: LeaseView) -> LeaseView:
        """Return a lease with its place in line, if it waits."""
        if known.lease.kept is not None:
            return structs.replace(known, awaited=await self.queries.awaited(known.lease, {}))
        if known.lease.state != "waiting":
            return known
        standing = await self.queries.standing(known.lease, asking=True)
        return structs.replace(known, standing=standing)

    async def _seen(
        self,
        known: LeaseView,
        until: Instant,
        seconds: float,
        gone: Callable[[], Awaitable[None]] | None,
        kept: Instant | None,
    ) -> LeaseView:
        """Wait for the grant or end of a ticket just polled; `until` is its `heard_until`.

        `kept` is that because of clients of other processes; None: there are none.
        """
        lease = known.lease
        if lease.state != "waiting" or seconds <= 0:
            return await self._placed(known)
        future = self.waiting.expect(lease.id, until, kept)
        there, scan = True, lease.pull or lease.attended
        try:
            # Another process may have granted it, and the change may already have been followed.
            if self._engine.shared and not await self.queries.waits(lease.id):
                return await self.queries.lease(lease.id)
            there = await either(future, seconds, gone)
            # At the end of the process, the client leaves: it needs a new connection.
            there = there and not (scan and future.cancelled())
            if future.done() and not future.cancelled():
                return LeaseView(future.result(), self._service_clock.since(known.when))
        finally:
            left = self.waiting.forget(lease.id, future)
        if not there and left is not None:
            with suppress(Error):  # nobody reads the answer, or the process ends
                await self._transactor.submit(LeaseLeave(lease.id, *left, scan))
        return await self.queries.lease(lease.id, asking=True)


def _micro(seconds: float) -> int:
    return round(seconds * SECOND)
