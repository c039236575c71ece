"""Callers that wait count as polling until they leave, and no longer."""

import asyncio
from pathlib import Path

from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId
from moorage.service.admission.ending import LeaseRevoke
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRenew, OnBehalf
from moorage.service.admission.service import Admission
from moorage.service.admission.waiters import Waiters
from tests.service.pools import (
    ask,
    opened,
    pass_time,
    pool_put,
    spec,
    until_queued,
    wish,
    with_manual_clock,
)
from tests.service.running import TESTER, Running


async def until_waiting(admission: Admission) -> None:
    """Return as soon as a client waits in a long poll."""
    while not admission.waiting.count:
        await admission.queries.leases(None, 1)


def test_a_repeated_request_counts_as_a_poll(tmp_path: Path) -> None:
    """A request that is repeated because its answer was lost waits as long as it asks to."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "a", "p", ttl=300 * SECOND)
        await ask(admission, "b", "p")
        await pass_time(one, 20 * SECOND)
        again = asyncio.create_task(admission.acquire(wish("b", "p"), TESTER, 60.0))
        await until_waiting(admission)
        await pass_time(one, 40 * SECOND)
        admission.waiting.close()
        assert (await again).lease.state == "waiting"

    with_manual_clock(tmp_path, scenario)


def test_the_sweeper_ends_an_abandoned_ticket_when_its_patience_is_over(tmp_path: Path) -> None:
    """When a caller leaves, the sweeper wakes at the end of its ticket's patience, not later."""

    async def scenario() -> None:
        async with opened(f"sqlite:///{tmp_path}/m.sqlite") as service:
            admission = service.admission
            await pool_put(admission, "p", spec())
            await ask(admission, "a", "p")
            leaving = asyncio.Event()

            async def gone() -> None:
                await leaving.wait()

            wanted = wish("b", "p", patience=SECOND // 10)
            asking = asyncio.create_task(admission.acquire(wanted, TESTER, 60.0, gone))
            await until_waiting(admission)
            ticket = (await admission.queries.leases(None, 1, "p", "waiting"))[0][0].lease.id
            await admission.waited(ticket, 0.2)  # now the sweeper waits for the next due time
            leaving.set()
            await asking
            future = admission.waiting.expect(ticket, Instant(0))
            async with asyncio.timeout(1.0):
                assert (await future).cause == "unheard"

    asyncio.run(scenario())


def test_a_broken_connection_does_not_end_a_newer_poll(tmp_path: Path) -> None:
    """A client whose connection broke polls on a new one before the service notices the break."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "a", "p", ttl=300 * SECOND)
        leaving = asyncio.Event()

        async def gone() -> None:
            await leaving.wait()

        broken = asyncio.create_task(admission.acquire(wish("b", "p"), TESTER, 60.0, gone))
        await until_queued(admission, "p")
        await until_waiting(admission)
        ticket = (await admission.queries.leases(None, 1, "p", "waiting"))[0][0].lease.id
        await pass_time(one, SECOND)
        again = asyncio.create_task(admission.waited(ticket, 60.0))
        await pass_time(one, SECOND)
        leaving.set()
        await broken
        await pass_time(one, 50 * SECOND)
        admission.waiting.close()
        assert (await again).lease.state == "waiting"

    with_manual_clock(tmp_path, scenario)


def test_a_ticket_whose_two_connections_break_is_withdrawn(tmp_path: Path) -> None:
    """Both connections of a client break, the newer one first: its patience counts from then on."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "a", "p", ttl=300 * SECOND)
        ticket = (await ask(admission, "b", "p", patience=5 * SECOND)).lease.id
        breaks = [asyncio.Event(), asyncio.Event()]
        waits = []
        for one_breaks in breaks:
            waits.append(asyncio.create_task(admission.waited(ticket, 60.0, one_breaks.wait)))
            while len(admission.waiting._futures.get(ticket, ())) < len(waits):
                await admission.queries.report("p")
            await pass_time(one, SECOND)
        for one_breaks, wait in reversed([*zip(breaks, waits, strict=True)]):
            one_breaks.set()
            await wait
        await pass_time(one, 4 * SECOND)
        assert (await admission.queries.lease(ticket)).lease.state == "waiting"
        await pass_time(one, 2 * SECOND)
        assert (await admission.queries.lease(ticket)).lease.cause == "unheard"

    with_manual_clock(tmp_path, scenario)


def test_callers_that_wait_for_the_end_are_woken(tmp_path: Path) -> None:
    """Every kind of end wakes the callers that wait for it; a renewal does not."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        for cause in ("revoked", "released", "ttl_over", "hold_over"):
            hold = 20 * SECOND if cause == "hold_over" else None
            lease = (await ask(admission, cause, "p", hold=hold)).lease.id
            watching = asyncio.create_task(admission.until_ended(lease, 60.0))
            await until_waiting(admission)
            await admission.change(LeaseRenew(lease, Proof("me")))
            assert not watching.done()
            if cause == "revoked":
                await admission.change(LeaseRevoke(lease, "why", by=OnBehalf(TESTER)))
            elif cause == "released":
                await admission.change(LeaseRelease(lease, Proof("me")))
            else:
                await pass_time(one, 64 * SECOND)
            async with asyncio.timeout(5):
                assert (await watching).lease.cause == cause
            assert admission.waiting.count == 0

    with_manual_clock(tmp_path, scenario)


def test_waiting_for_the_end_does_not_renew(tmp_path: Path) -> None:
    """It writes nothing: leases that are not renewed and tickets that are not polled still end."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease.id
        ticket = (await ask(admission, "b", "p")).lease.id
        before = one.service.index.revision
        watching = [asyncio.create_task(admission.until_ended(x, 60.0)) for x in (lease, ticket)]
        while admission.waiting.count < 2:
            await admission.queries.report("p")
        assert one.service.index.revision == before
        await pass_time(one, 31 * SECOND)
        async with asyncio.timeout(5):
            assert (await watching[1]).lease.cause == "unheard"
        assert not watching[0].done()
        await pass_time(one, 30 * SECOND)
        async with asyncio.timeout(5):
            assert (await watching[0]).lease.cause == "ttl_over"

    with_manual_clock(tmp_path, scenario)


def test_a_wait_for_the_end_has_an_end(tmp_path: Path) -> None:
    """It ends when its time is over, when the caller leaves, and when the service ends."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease.id
        assert (await admission.until_ended(lease, 0.01)).lease.state == "granted"
        leaving = asyncio.Event()
        watching = asyncio.create_task(admission.until_ended(lease, 60.0, leaving.wait))
        await until_waiting(admission)
        leaving.set()
        assert (await watching).lease.state == "granted"
        watching = asyncio.create_task(admission.until_ended(lease, 60.0))
        await until_waiting(admission)
        admission.waiting.close()
        assert (await watching).lease.state == "granted"
        assert admission.waiting.count == 0
        assert (await admission.until_ended(lease, 60.0)).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_an_earlier_request_here_is_none_that_waits_elsewhere() -> None:
    """Only deadlines that no request of this process has set are those of other processes."""
    waiting, lease = Waiters(), LeaseId("a")
    assert waiting.elsewhere_of(lease, Instant(30)) == 30
    waiting.hear(lease, Instant(40), Instant(30))
    assert waiting.elsewhere_of(lease, Instant(40)) == 30
    waiting.hear(lease, Instant(50), None)
    assert waiting.elsewhere_of(lease, Instant(50)) is None
    assert waiting.elsewhere_of(lease, Instant(60)) == 60
    waiting.hear(lease, Instant(60), Instant(60))
    assert waiting.elsewhere_of(lease, Instant(60)) == 60
    assert waiting.elsewhere_of(LeaseId("b"), Instant(50)) == 50
