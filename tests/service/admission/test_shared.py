"""Two services on one database grant from the same lines and wake each other's callers."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import psycopg

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Pacing
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.service_time import When
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import LeaseRelease, OnBehalf, TicketMove
from moorage.service.admission.service import Admission
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger.allocation_cases import AllocationsReplace
from tests.service.batch.test_shared import Pair, claim
from tests.service.batch.test_shared import play as play_pair
from tests.service.pools import (
    MINUTE,
    ask,
    opened,
    pool_delete,
    pool_put,
    refusal,
    spec,
    until_queued,
    wish,
)
from tests.service.running import TESTER, consumer_id
from tests.support import cluster

PATIENT = {"patience": 10 * MINUTE}


def play(scenario: Callable[[Admission, Admission], Awaitable[None]]) -> None:
    """Run a scenario on two services that share a database."""

    async def run() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await scenario(one.admission, other.admission)

    asyncio.run(run())


def test_the_limit_is_shared() -> None:
    """However many ask at both services at once, exactly as many are granted as there are units."""

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec(5))
        both = [one, other]
        views = await asyncio.gather(*(ask(both[n % 2], str(n), "p") for n in range(60)))
        granted = [view.lease for view in views if view.lease.state == "granted"]
        assert len(granted) == 5
        assert len({lease.token for lease in granted}) == 5
        assert len({view.lease.arrival for view in views}) == 60
        for holder in (one, other):
            pool = (await holder.queries.pool("p")).pool
            assert (pool.occupied, pool.waiting) == (5, 55)

    play(scenario)


def test_a_release_at_one_wakes_waiting_callers_at_the_other() -> None:
    """A waiting caller is answered by its process, whichever process made the grant."""

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec())
        holder = (await ask(one, "0", "p")).lease
        for n in range(1, 20):
            waiting = asyncio.create_task(other.acquire(wish(str(n), "p"), TESTER, 30.0))
            await until_queued(one, "p")
            await one.change(LeaseRelease(holder.id, Proof("me")))
            holder = (await waiting).lease
            assert holder.state == "granted"

    play(scenario)


def test_the_line_is_shared() -> None:
    """Tickets of both services are granted in the order of their arrival."""

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec())
        both = [one, other]
        asked: list[LeaseId] = [
            (await ask(both[n % 2], str(n), "p", **PATIENT)).lease.id for n in range(30)
        ]
        for n, lease in enumerate(asked):
            assert (await both[n % 2].queries.lease(lease)).lease.state == "granted"
            await both[(n + 1) % 2].change(LeaseRelease(lease, Proof("me")))

    play(scenario)


def test_pacing_is_shared() -> None:
    """Any two grants are at least the interval apart, whichever process makes them."""

    async def scenario(one: Admission, other: Admission) -> None:
        paced = spec(50, pacing=Pacing(interval=SECOND // 5))
        await pool_put(one, "p", paced)
        both = [one, other]
        views = await asyncio.gather(
            *(both[n % 2].acquire(wish(str(n), "p"), TESTER, 30.0) for n in range(10))
        )
        times = sorted(view.lease.granted_at or 0 for view in views)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert min(gaps) >= SECOND // 5

    play(scenario)


def test_missed_changes_are_caught_up() -> None:
    """A process that missed changes still wakes its waiting callers, and its metrics are right."""

    async def scenario(one: Admission, other: Admission, url: str) -> None:
        await pool_put(one, "p", spec())
        holder = (await ask(one, "holder", "p")).lease
        waiting = asyncio.create_task(other.acquire(wish("next", "p"), TESTER, 30.0))
        await until_queued(one, "p")
        with psycopg.connect(url, autocommit=True) as rows:
            await pool_put(one, "gone", spec())
            async with asyncio.timeout(10):
                while "gone" not in other.tally.pools:
                    await one.queries.pool("p")
            await pool_delete(one, "gone")
            await pool_put(one, "new", spec())
            await one.change(LeaseRelease(holder.id, Proof("me")))
            # In the same step of the loop: the other service has not read the change rows yet.
            rows.execute("DELETE FROM change")
            rows.execute("UPDATE clock SET compacted = revision")
        async with asyncio.timeout(10):
            assert (await waiting).lease.state == "granted"
            while other.tally.pools.keys() != {"p", "new"}:
                await one.queries.pool("p")
        assert other.tally.pools["p"].occupied == 1

    async def run() -> None:
        url = cluster.fresh()
        async with opened(url) as one, opened(url) as other:
            await scenario(one.admission, other.admission, url)

    asyncio.run(run())


async def first_reading(admission: Admission) -> None:
    """Wait until the whole state has been reported to followers for the first time."""
    followers = admission._followers
    async with asyncio.timeout(20):
        while followers._missed.is_set() or followers._since is not None:
            await asyncio.wait([asyncio.ensure_future(admission.queries.now())])


def test_waiters_are_woken_although_a_follower_fails() -> None:
    """After a fault, the whole state is reported long before the end of a wait.

    The same holds if the first reading of that state fails, too.
    """

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec())
        holder = (await ask(one, "holder", "p")).lease
        waiting = asyncio.create_task(other.acquire(wish("next", "p"), TESTER, 60.0))
        await until_queued(one, "p")
        await first_reading(other)
        queries: Any = other.queries
        now, note = queries.now, other.waiting.note
        failed: list[str] = []

        async def unavailable() -> When:
            queries.now = now
            failed.append("now")
            raise Error(Code.UNAVAILABLE, "The database is away for a moment.")

        def faulty(changes: Changes, when: When) -> None:
            if not failed:
                queries.now = unavailable
                failed.append("note")
                raise ZeroDivisionError
            note(changes, when)

        followers = other._followers._followers
        followers[followers.index(note)] = faulty
        await one.change(LeaseRelease(holder.id, Proof("me")))
        async with asyncio.timeout(20):
            assert (await waiting).lease.state == "granted"
        assert failed == ["note", "now"]

    play(scenario)


def test_a_ticket_that_was_missed_is_tried_without_another_change() -> None:
    """Its capacity was freed before the process knew of it, and the others have stopped."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        host = await pair.provider(VCPU=1)
        await pool_put(one.admission, "p", spec(9))
        wanted = LeaseAllocations(consumer_id(1), {host: {"VCPU": 1}}, "project", "user", None)
        blocker = claim({host: {"VCPU": 1}})
        await one.transactor.submit(blocker)
        await other.index.current()
        other.feed._followers.missed()  # from this reading on, the next one waits for a second
        await first_reading(other.admission)
        other.feed.bell.ring()
        while not other.admission._capacity_retry._loaded:
            await other.admission.queries.pool("p")
        await other.feed.stop()
        ticket = (await ask(one.admission, "a", "p", allocations=wanted, **PATIENT)).lease
        assert ticket.state == "waiting"
        for service in (one.admission, other.admission):
            await service.sweeper.stop()
        await one.admission._capacity_retry.stop()
        freed = ConsumerRequest(blocker.requests[0].consumer, {}, "project", "user")
        await one.transactor.submit(AllocationsReplace([freed]))
        with psycopg.connect(pair.url) as rows:
            rows.execute("DELETE FROM change")
            rows.execute("UPDATE clock SET compacted = revision")
        await other.index.current()
        async with asyncio.timeout(20):
            while await other.admission.queries.waits(ticket.id):
                pass

    play_pair(scene)


def test_callers_do_not_wait_for_a_lease_that_a_restore_has_undone() -> None:
    """They get the answer of any unknown lease, not after the whole time they wanted to wait."""

    async def scene(pair: Pair) -> None:
        one, other = pair.services
        await pool_put(one.admission, "p", spec())
        await other.index.current()
        with psycopg.connect(pair.url, autocommit=True) as rows:
            rows.execute("SET session_replication_role = replica")  # in any order
            found = rows.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
            tables = [name for (name,) in found]
            for table in tables:
                rows.execute(f"CREATE TABLE kept_{table} AS TABLE {table}".encode())
            holder = (await ask(one.admission, "a", "p")).lease
            waits = [
                asyncio.create_task(other.admission.acquire(wish("b", "p"), TESTER, 60.0)),
                asyncio.create_task(other.admission.until_ended(holder.id, 60.0)),
            ]
            async with asyncio.timeout(20):
                while other.admission.waiting.count < 2:
                    await other.admission.queries.pool("p")
            for service in pair.services:
                await service.admission.sweeper.stop()
            with rows.transaction():
                for table in tables:
                    rows.execute(f"DELETE FROM {table}".encode())
                    rows.execute(f"INSERT INTO {table} TABLE kept_{table}".encode())
                    rows.execute(f"DROP TABLE kept_{table}".encode())
        async with asyncio.timeout(20):
            for wait in waits:
                assert await refusal(wait) == Code.LEASE_NOT_FOUND

    play_pair(scene)


def test_an_end_at_one_wakes_watchers_at_the_other() -> None:
    """A caller that waits for the end of a lease is answered, whichever process ended it."""

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec())
        lease = (await ask(one, "a", "p")).lease.id
        watching = asyncio.create_task(other.until_ended(lease, 30.0))
        while not other.waiting.count:
            await other.queries.report("p")
        begun = asyncio.get_running_loop().time()
        await one.change(LeaseRevoke(lease, "why", by=OnBehalf(TESTER)))
        assert (await watching).lease.cause == "revoked"
        assert asyncio.get_running_loop().time() - begun < 5.0

    play(scenario)


def test_moves_are_shared() -> None:
    """Operators at both services move and force tickets while leases end: one order for both."""

    async def scenario(one: Admission, other: Admission) -> None:
        await pool_put(one, "p", spec())
        both = [one, other]
        held = (await ask(one, "held", "p", **PATIENT)).lease.id
        tickets = [(await ask(both[n % 2], str(n), "p", **PATIENT)).lease.id for n in range(8)]
        await other.change(TicketMove(tickets[5], None, by=OnBehalf(TESTER)))
        assert (await one.queries.lease(tickets[5])).lease.priority == 1
        await asyncio.gather(
            one.change(LeaseRelease(held, Proof("me"))),
            other.change(TicketMove(tickets[5], -1, by=OnBehalf(TESTER))),
            *(
                both[n % 2].change(TicketMove(tickets[n], None, by=OnBehalf(TESTER)))
                for n in (7, 6)
            ),
            return_exceptions=True,
        )
        granted = set()
        while len(granted) < len(tickets):
            views = [(await both[len(granted) % 2].queries.lease(key)) for key in tickets]
            (now,) = [view.lease for view in views if view.lease.state == "granted"]
            waiting = [view.lease for view in views if view.lease.state == "waiting"]
            if granted:
                assert all(now.priority >= ticket.priority for ticket in waiting)
            granted.add(now.id)
            moved = [ticket.id for ticket in waiting[:1]]
            await asyncio.gather(
                both[len(granted) % 2].change(LeaseRelease(now.id, Proof("me"))),
                *(
                    both[n].change(TicketMove(key, -2 - n, by=OnBehalf(TESTER)))
                    for key in moved
                    for n in (0, 1)
                ),
                return_exceptions=True,
            )
        assert granted == {*tickets}

    play(scenario)
