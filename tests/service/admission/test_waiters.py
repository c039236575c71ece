"""Who waits is not forgotten while it is there, and not kept long when it is gone."""

import asyncio
from pathlib import Path

from moorage.core.admission.leases import Proof
from moorage.core.clock import SECOND, Instant
from moorage.service.admission.service import Admission
from tests.service.pools import ask, by_hand, later, opened, queued, spec, wish
from tests.service.running import TESTER, Running


async def there(admission: Admission) -> None:
    """Return as soon as a client waits in a long poll."""
    while not admission.waiting.count:
        await admission.queries.leases(None, 1)


def test_who_asks_again_is_heard_of(tmp_path: Path) -> None:
    """The same request once more, because the answer was lost: it waits as long as it says."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        await ask(admission, "a", "p", ttl=300 * SECOND)
        await ask(admission, "b", "p")
        await later(one, 20 * SECOND)
        again = asyncio.create_task(admission.ask(wish("b", "p"), TESTER, 60.0))
        await there(admission)
        await later(one, 40 * SECOND)
        admission.waiting.close()
        assert (await again).lease.state == "waiting"

    by_hand(tmp_path, scene)


def test_who_leaves_is_looked_for_when_its_patience_is_over(tmp_path: Path) -> None:
    """The sweeper looks again when the ticket of a caller that has gone is over, not later."""

    async def scene() -> None:
        async with opened(f"sqlite:///{tmp_path}/m.sqlite") as service:
            admission = service.admission
            await admission.pool_put("p", spec(), None, TESTER)
            await ask(admission, "a", "p")
            leaving = asyncio.Event()

            async def gone() -> None:
                await leaving.wait()

            wanted = wish("b", "p", patience=SECOND // 10)
            asking = asyncio.create_task(admission.ask(wanted, TESTER, 60.0, gone))
            await there(admission)
            ticket = (await admission.queries.leases(None, 1, "p", "waiting"))[0][0].lease.id
            await admission.waited(ticket, 0.2)  # by then the sweeper waits for what is due next
            leaving.set()
            await asking
            future = admission.waiting.expect(ticket, Instant(0))
            async with asyncio.timeout(1.0):
                assert (await future).cause == "unheard"

    asyncio.run(scene())


def test_who_leaves_takes_nobody_else_along(tmp_path: Path) -> None:
    """A connection breaks, and its client has asked again on another before that is noticed."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        await ask(admission, "a", "p", ttl=300 * SECOND)
        leaving = asyncio.Event()

        async def gone() -> None:
            await leaving.wait()

        broken = asyncio.create_task(admission.ask(wish("b", "p"), TESTER, 60.0, gone))
        await queued(admission, "p")
        await there(admission)
        ticket = (await admission.queries.leases(None, 1, "p", "waiting"))[0][0].lease.id
        await later(one, SECOND)
        again = asyncio.create_task(admission.waited(ticket, 60.0))
        await later(one, SECOND)
        leaving.set()
        await broken
        await later(one, 50 * SECOND)
        admission.waiting.close()
        assert (await again).lease.state == "waiting"

    by_hand(tmp_path, scene)


def test_of_two_who_leave_no_ghost_stays(tmp_path: Path) -> None:
    """Both connections of a client break, the newer one first: its patience counts from then."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        await ask(admission, "a", "p", ttl=300 * SECOND)
        ticket = (await ask(admission, "b", "p", patience=5 * SECOND)).lease.id
        breaks = [asyncio.Event(), asyncio.Event()]
        waits = []
        for one_breaks in breaks:
            waits.append(asyncio.create_task(admission.waited(ticket, 60.0, one_breaks.wait)))
            while len(admission.waiting._futures.get(ticket, ())) < len(waits):
                await admission.queries.report("p")
            await later(one, SECOND)
        for one_breaks, wait in reversed([*zip(breaks, waits, strict=True)]):
            one_breaks.set()
            await wait
        await later(one, 4 * SECOND)
        assert (await admission.queries.lease(ticket)).lease.state == "waiting"
        await later(one, 2 * SECOND)
        assert (await admission.queries.lease(ticket)).lease.cause == "unheard"

    by_hand(tmp_path, scene)


def test_who_waits_for_the_end_is_told_of_it(tmp_path: Path) -> None:
    """Whatever ends a lease wakes whoever waits for that; a renewal wakes nobody."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        for cause in ("revoked", "released", "ttl_over", "hold_over"):
            hold = 20 * SECOND if cause == "hold_over" else None
            lease = (await ask(admission, cause, "p", hold=hold)).lease.id
            watching = asyncio.create_task(admission.until_ended(lease, 60.0))
            await there(admission)
            await admission.renew(lease, Proof("me"))
            assert not watching.done()
            if cause == "revoked":
                await admission.revoke(lease, "why", TESTER)
            elif cause == "released":
                await admission.release(lease, Proof("me"))
            else:
                await later(one, 64 * SECOND)
            async with asyncio.timeout(5):
                assert (await watching).lease.cause == cause
            assert admission.waiting.count == 0

    by_hand(tmp_path, scene)


def test_to_wait_for_the_end_is_no_sign_of_life(tmp_path: Path) -> None:
    """It writes nothing: a lease that is not renewed ends, and a ticket that is not polled."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        lease = (await ask(admission, "a", "p")).lease.id
        ticket = (await ask(admission, "b", "p")).lease.id
        before = one.service.index.revision
        watching = [asyncio.create_task(admission.until_ended(x, 60.0)) for x in (lease, ticket)]
        while admission.waiting.count < 2:
            await admission.queries.report("p")
        assert one.service.index.revision == before
        await later(one, 31 * SECOND)
        async with asyncio.timeout(5):
            assert (await watching[1]).lease.cause == "unheard"
        assert not watching[0].done()
        await later(one, 30 * SECOND)
        async with asyncio.timeout(5):
            assert (await watching[0]).lease.cause == "ttl_over"

    by_hand(tmp_path, scene)


def test_a_wait_for_the_end_has_an_end(tmp_path: Path) -> None:
    """When the time is over, when the caller has gone, when the service ends: nobody is kept."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(), None, TESTER)
        lease = (await ask(admission, "a", "p")).lease.id
        assert (await admission.until_ended(lease, 0.01)).lease.state == "granted"
        leaving = asyncio.Event()
        watching = asyncio.create_task(admission.until_ended(lease, 60.0, leaving.wait))
        await there(admission)
        leaving.set()
        assert (await watching).lease.state == "granted"
        watching = asyncio.create_task(admission.until_ended(lease, 60.0))
        await there(admission)
        admission.waiting.close()
        assert (await watching).lease.state == "granted"
        assert admission.waiting.count == 0
        assert (await admission.until_ended(lease, 60.0)).lease.state == "granted"

    by_hand(tmp_path, scene)
