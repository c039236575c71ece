"""Requests that wait for pull tickets: in this process, in another one, and until they leave."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.core.admission.requests import LeaseRequest, Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.admission.service import Admission
from tests.service.pools import (
    ask,
    opened,
    pass_time,
    pool_put,
    refusal,
    spec,
    until_queued,
    wish,
    with_manual_clock,
)
from tests.service.running import TESTER, Running
from tests.support import cluster

ME = Proof("me")
PROMPT_SECONDS = 2.0
"""Far below the wait: a loop of a busy machine needs some time."""


def pull(key: str, *pools: str, units: int = 1, **more: object) -> LeaseRequest:
    """A request with `pull`."""
    return wish(key, *pools, units=units, pull=True, **more)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a new database."""
    return f"sqlite:///{tmp_path}/m.sqlite" if request.param == "sqlite" else cluster.fresh()


def play(url: str, scenario: Callable[[Admission], Awaitable[None]]) -> None:
    """Run a scenario on one service; its database must be in order at the end."""

    async def run() -> None:
        async with opened(url) as service:
            await scenario(service.admission)

    asyncio.run(run())


async def state(admission: Admission, key: str) -> str:
    """Return the state of the lease with this key."""
    views, _, _ = await admission.queries.leases(None, 9, owner="me", key_prefix=key)
    (view,) = (one for one in views if one.lease.key == key)
    return view.lease.state


def test_a_request_that_waits_is_granted(url: str) -> None:
    """A release grants the ticket for which a request waits, ahead of an earlier absent one."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p")).lease.id
        assert (await admission.acquire(pull("absent", "p"), TESTER)).lease.state == "waiting"
        waiting = asyncio.create_task(admission.acquire(pull("there", "p"), TESTER, 30.0))
        await until_queued(admission, "p", 2)
        await admission.change(LeaseRelease(held, ME))
        async with asyncio.timeout(PROMPT_SECONDS):
            granted = (await waiting).lease
        assert granted.state == "granted"
        assert await state(admission, "absent") == "waiting"
        await admission.change(LeaseRelease(granted.id, ME))
        assert await state(admission, "absent") == "waiting"
        assert (await admission.acquire(pull("absent", "p"), TESTER)).lease.state == "granted"

    play(url, scenario)


def test_a_poll_without_a_wait_is_granted_in_its_turn(url: str) -> None:
    """By its id or by its key, in the batch of the poll."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p")).lease.id
        ticket = (await admission.acquire(pull("a", "p"), TESTER)).lease.id
        await admission.change(LeaseRelease(held, ME))
        assert await state(admission, "a") == "waiting"
        assert (await admission.waited(ticket, 0.0, scan=True)).lease.state == "granted"

    play(url, scenario)


def test_a_client_that_leaves_is_absent(url: str) -> None:
    """Its ticket is not granted later, and units that were set aside for it go to others."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2))
        held = (await ask(admission, "held", "p")).lease.id
        leaving = asyncio.Event()
        large = pull("large", "p", units=2)
        asking = asyncio.create_task(admission.acquire(large, TESTER, 60.0, leaving.wait))
        await until_queued(admission, "p")
        while not admission.waiting.count:
            await admission.queries.pool("p")
        other = asyncio.create_task(admission.acquire(wish("other", "p"), TESTER, 60.0))
        await until_queued(admission, "p", 2)
        assert not other.done()
        leaving.set()
        await asking
        async with asyncio.timeout(PROMPT_SECONDS):
            assert (await other).lease.state == "granted"
        await admission.change(LeaseRelease(held, ME))
        await admission.change(LeaseRelease((await other).lease.id, ME))
        assert await state(admission, "large") == "waiting"

    play(url, scenario)


def test_when_the_wait_ends_others_are_considered(url: str) -> None:
    """No event is needed: the sweeper looks when nobody waits any more."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec(2))
        await ask(admission, "held", "p")
        asking = asyncio.create_task(admission.acquire(pull("large", "p", units=2), TESTER, 0.3))
        await until_queued(admission, "p")
        other = asyncio.create_task(admission.acquire(wish("other", "p"), TESTER, 60.0))
        async with asyncio.timeout(PROMPT_SECONDS):
            assert (await asking).lease.state == "waiting"
            assert (await other).lease.state == "granted"

    play(url, scenario)


def test_one_of_two_clients_leaves(tmp_path: Path) -> None:
    """The other's wait counts to its end, whichever polled last, and no longer."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p", ttl=300 * SECOND)).lease.id
        leaving = asyncio.Event()
        first = asyncio.create_task(admission.acquire(pull("a", "p"), TESTER, 60.0, leaving.wait))
        await until_queued(admission, "p")
        while not admission.waiting.count:
            await admission.queries.pool("p")
        assert (await admission.acquire(pull("a", "p"), TESTER)).lease.state == "waiting"
        await pass_time(one, 30 * SECOND)
        await admission.change(LeaseRelease(held, ME))
        assert (await first).lease.state == "granted", "a short poll did not end its wait"
        await admission.change(LeaseRelease((await first).lease.id, ME))
        held = (await ask(admission, "held again", "p", ttl=300 * SECOND)).lease.id
        longer = asyncio.create_task(admission.acquire(pull("b", "p"), TESTER, 60.0, leaving.wait))
        await until_queued(admission, "p")
        while not admission.waiting.count:
            await admission.queries.pool("p")
        leaving.set()
        await longer
        await pass_time(one, SECOND)
        await admission.change(LeaseRelease(held, ME))
        assert await state(admission, "b") == "waiting"

    with_manual_clock(tmp_path, scenario)


def test_the_end_of_the_service_ends_waits(tmp_path: Path) -> None:
    """Clients are answered, and their tickets are not granted until they ask again."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p", ttl=300 * SECOND)).lease.id
        waiting = asyncio.create_task(admission.acquire(pull("a", "p"), TESTER, 60.0))
        await until_queued(admission, "p")
        while not admission.waiting.count:
            await admission.queries.pool("p")
        admission.waiting.close()
        assert (await waiting).lease.state == "waiting"
        await pass_time(one, SECOND)
        await admission.change(LeaseRelease(held, ME))
        assert await state(admission, "a") == "waiting"

    with_manual_clock(tmp_path, scenario)


def test_a_wait_at_one_process_counts_at_the_other() -> None:
    """A release at one process grants the ticket whose client waits at the other."""

    async def run() -> None:
        shared = cluster.fresh()
        async with opened(shared) as here, opened(shared) as there:
            one, other = here.admission, there.admission
            await pool_put(one, "p", spec())
            holder = (await ask(one, "0", "p")).lease
            for n in range(1, 10):
                waiting = asyncio.create_task(other.acquire(pull(str(n), "p"), TESTER, 30.0))
                await until_queued(one, "p")
                await one.change(LeaseRelease(holder.id, ME))
                async with asyncio.timeout(PROMPT_SECONDS):
                    holder = (await waiting).lease
                assert holder.state == "granted"

    asyncio.run(run())


def test_a_long_line_of_absent_clients(url: str) -> None:
    """Those behind them are granted: their tickets are read, too."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p")).lease.id
        for n in range(50):
            await admission.acquire(pull(f"absent-{n}", "p"), TESTER)
        waiting = asyncio.create_task(admission.acquire(pull("there", "p"), TESTER, 30.0))
        await until_queued(admission, "p", 51)
        assert (await admission.queries.pool("p")).first is not None
        await admission.change(LeaseRelease(held, ME))
        async with asyncio.timeout(PROMPT_SECONDS):
            granted = (await waiting).lease
        assert granted.state == "granted"

    play(url, scenario)


def test_positions_do_not_count_absent_clients(url: str) -> None:
    """A ticket behind an absent one is the first; the reason of the absent one says so."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        await ask(admission, "held", "p")
        absent = (await admission.acquire(pull("absent", "p"), TESTER)).lease
        after = await ask(admission, "after", "p")
        assert after.standing is not None
        assert after.standing.position == 1
        seen = (await admission.queries.lease(absent.id)).standing
        assert seen is not None
        assert (seen.code, seen.position) == ("absent", 1)

    play(url, scenario)


def test_keys_by_prefix(url: str) -> None:
    """Only keys of the owner that begin with the prefix, in pages, with state and pool."""

    async def scenario(admission: Admission) -> None:
        queries = admission.queries
        await pool_put(admission, "p", spec(20))
        await pool_put(admission, "q", spec(20))
        for key in ("a", "a/1", "a/2", "a0", "b", "a\ud7ff", "a\ue000", "\U0010fffe"):
            await ask(admission, key, "q" if key == "a/2" else "p")
            await ask(admission, key, "p", owner="you")

        async def keys(prefix: str, **more: str) -> list[str]:
            found, cursor = [], None
            while True:
                page, cursor, _ = await queries.leases(cursor, 2, key_prefix=prefix, **more)  # type: ignore[arg-type] # of str
                found += [view.lease.key for view in page]
                if cursor is None:
                    return found

        mine = {"owner": "me"}
        assert await keys("a", **mine) == ["a", "a/1", "a/2", "a0", "a\ud7ff", "a\ue000"]
        assert await keys("a/", **mine) == ["a/1", "a/2"]
        assert await keys("a\ud7ff", **mine) == ["a\ud7ff"]
        assert await keys("\U0010fffe", **mine) == ["\U0010fffe"]
        assert await keys("a/", pool="p", **mine) == ["a/1"]
        assert await keys("a/", state="waiting", **mine) == []
        assert await keys("c", **mine) == []
        for prefix, owner in (("a", None), ("", "me"), ("a" * 256, "me"), ("\U0010ffff", "me")):
            found = await refusal(queries.leases(None, 9, owner=owner, key_prefix=prefix))
            assert found is Code.INVALID

    play(url, scenario)


def test_a_digest_is_as_before(tmp_path: Path) -> None:
    """Another digest of the same request would make a new lease for a key that is in use."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(9))
        view = await ask(admission, "a", "p", labels={"x": "y"})
        digest = "a14096a1f738443f759cc1cc3a5f21b2462d7baf898ee8a7960c8de189f52cd7"
        assert view.lease.digest == digest
        assert await refusal(admission.acquire(pull("a", "p", labels={"x": "y"}), TESTER)) == (
            Code.KEY_REUSED
        )
        again = await ask(admission, "a", "p", labels={"x": "y"}, reopen=True)
        assert again.lease.id == view.lease.id

    with_manual_clock(tmp_path, scenario)


@pytest.mark.parametrize("how", ["asks", "asks for a moment", "leaves"])
def test_a_client_of_another_process_does_not_end_a_wait(how: str) -> None:
    """Clients of two processes wait for one ticket: one of them goes, the other is served."""

    async def run() -> None:
        url = cluster.fresh()
        async with opened(url) as first, opened(url) as second:
            one, other = first.admission, second.admission
            await pool_put(one, "p", spec())
            held = (await one.acquire(pull("held", "p"), TESTER, 1.0)).lease.id
            waiting = asyncio.create_task(one.acquire(pull("there", "p"), TESTER, 30.0))
            await until_queued(one, "p", 1)
            if how == "leaves":
                entered = asyncio.Event()

                async def gone() -> None:
                    entered.set()

                view = await other.acquire(pull("there", "p"), TESTER, 60.0, gone)
                assert entered.is_set()
            else:
                seconds = 0.1 if how == "asks for a moment" else 0.0
                view = await other.acquire(pull("there", "p"), TESTER, seconds)
            assert view.lease.state == "waiting"
            await one.change(LeaseRelease(held, ME))
            async with asyncio.timeout(PROMPT_SECONDS):
                assert (await waiting).lease.state == "granted"

    asyncio.run(run())
