"""Effects of time, restarts and the ledger on leases and tickets."""

import asyncio
from pathlib import Path
from typing import Any

from moorage.core.admission.model import Pacing, PoolSpec
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.ids import LeaseId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRenew
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger import allocation_cases
from tests.service.pools import (
    MINUTE,
    ask,
    opened,
    pass_time,
    pool_put,
    spec,
    until_queued,
    wish,
    with_manual_clock,
)
from tests.service.running import TESTER, ManualClock, Running, consumer_id, running


def test_a_line_outlives_a_restart(tmp_path: Path) -> None:
    """Tickets keep their places, and holders their leases, when the service restarts."""
    url = f"sqlite:///{tmp_path}/m.sqlite"

    async def before() -> list[LeaseId]:
        async with opened(url) as service:
            await pool_put(service.admission, "p", spec(1))
            return [(await ask(service.admission, str(n), "p")).lease.id for n in range(250)]

    async def after(leases: list[LeaseId]) -> None:
        async with opened(url) as service:
            for lease in leases:
                view = await service.admission.queries.lease(lease)
                assert view.lease.state == "granted", f"{lease} was not next"
                await service.admission.change(LeaseRelease(lease, Proof("me")))

    asyncio.run(after(asyncio.run(before())))


def test_a_restart_does_not_shorten_a_ttl(tmp_path: Path) -> None:
    """A TTL stops while the service is down: afterwards the rest of it remains."""
    clock = ManualClock()
    path = tmp_path / "m.sqlite"

    async def before() -> LeaseId:
        async with running(path, clock=clock) as one:
            short = PoolSpec(limit=1, ttl=3 * SECOND, ttl_max=MINUTE)
            await pool_put(one.service.admission, "p", short)
            return (await ask(one.service.admission, "a", "p")).lease.id

    async def after(lease: LeaseId) -> None:
        async with running(path, clock=clock) as one:
            admission = one.service.admission
            await admission.sweeper.sweep()
            await admission.change(LeaseRenew(lease, Proof("me")))
            clock.at += 4 * SECOND
            await admission.sweeper.sweep()
            assert (await admission.queries.lease(lease)).lease.cause == "ttl_over"

    lease = asyncio.run(before())
    clock.at += 4 * SECOND
    asyncio.run(after(lease))


def test_time_continues_after_a_start_with_a_clock_that_is_behind(tmp_path: Path) -> None:
    """Leases expire although no request comes, and although the clock was set back meanwhile."""
    clock = ManualClock()
    path = tmp_path / "m.sqlite"

    async def before() -> LeaseId:
        async with running(path, clock=clock) as one:
            await pool_put(one.service.admission, "p", spec())
            return (await ask(one.service.admission, "a", "p")).lease.id

    async def after(lease: LeaseId) -> None:
        async with running(path, clock=clock) as one:
            await pass_time(one, 2 * MINUTE)
            seen = await one.service.admission.queries.lease(lease)
            assert seen.lease.cause == "ttl_over"

    lease = asyncio.run(before())
    clock.jump = -60 * MINUTE
    asyncio.run(after(lease))


def test_allocations_are_taken_and_freed_with_their_lease(tmp_path: Path) -> None:
    """A lease and its allocations are granted together and freed together."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=1)
        admission = one.service.admission
        await pool_put(admission, "p", spec(5))
        holdings = [
            LeaseAllocations(consumer_id(n), {host: {"VCPU": 1}}, "project", "user", "INSTANCE")
            for n in range(2)
        ]
        first, second = [
            (await ask(admission, str(n), "p", allocations=held)).lease
            for n, held in enumerate(holdings)
        ]
        assert (first.state, second.state) == ("granted", "waiting")
        assert one.used(host) == 1
        waiting = await admission.queries.lease(second.id)
        assert waiting.standing is not None
        assert waiting.standing.code == "capacity"
        await admission.change(LeaseRelease(first.id, Proof("me")))
        assert (await admission.queries.lease(second.id)).lease.state == "granted"
        assert one.used(host) == 1
        await pass_time(one, 61 * SECOND)
        assert (await admission.queries.lease(second.id)).lease.cause == "ttl_over"
        assert one.used(host) == 0

    with_manual_clock(tmp_path, scenario)


def test_freed_capacity_is_noticed(tmp_path: Path) -> None:
    """A ticket that waits for capacity is granted when another consumer frees it."""

    async def scenario(one: Running) -> None:
        host = await one.provider(1, VCPU=1)
        await one.submit(_claimed(9, host))
        admission = one.service.admission
        await pool_put(admission, "p", spec(5))
        held = LeaseAllocations(consumer_id(1), {host: {"VCPU": 1}}, "project", "user", "INSTANCE")
        waiting = asyncio.create_task(
            admission.acquire(wish("a", "p", allocations=held), TESTER, 30.0)
        )
        await until_queued(admission, "p")
        await one.submit(allocation_cases.AllocationsDelete(consumer_id(9)))
        assert (await waiting).lease.state == "granted"
        assert one.used(host) == 1

    with_manual_clock(tmp_path, scenario)


def _claimed(n: int, host: Any) -> allocation_cases.AllocationsReplace:
    return allocation_cases.AllocationsReplace(
        [ConsumerRequest(consumer_id(n), {host: {"VCPU": 1}}, "project", "user", "INSTANCE")]
    )


def test_leases_that_are_not_renewed_expire(tmp_path: Path) -> None:
    """A lease ends with the first sweep after its TTL has passed since the last renewal."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease
        for _ in range(5):
            await pass_time(one, 40 * SECOND)
            await admission.change(LeaseRenew(lease.id, Proof("me")))
            await one.service.admission.sweeper.sweep()
            assert (await admission.queries.lease(lease.id)).lease.state == "granted"
        await pass_time(one, 61 * SECOND)
        assert (await admission.queries.lease(lease.id)).lease.cause == "ttl_over"
        assert (await admission.queries.pool("p")).pool.occupied == 0

    with_manual_clock(tmp_path, scenario)


def test_a_lease_that_comes_due_during_a_sweep_ends_with_the_next(tmp_path: Path) -> None:
    """The sweep that writes `alive_at` is not at fault: the lease was not due when it began."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease
        await admission.sweeper.stop()
        await pass_time(one, 52 * SECOND)
        one.clock.at += 7 * SECOND
        one.engine.hold_commits()
        sweep = asyncio.create_task(admission.sweeper.sweep())
        await one.engine.held.wait()
        one.clock.at += 2 * SECOND
        one.engine.continue_commits()
        assert await sweep, "the lease is due now"
        assert (await admission.queries.lease(lease.id)).lease.state == "granted"
        assert not await admission.sweeper.sweep()
        assert (await admission.queries.lease(lease.id)).lease.cause == "ttl_over"

    with_manual_clock(tmp_path, scenario)


def test_an_unheard_lease_that_is_kept_is_shown_so_for_good(tmp_path: Path) -> None:
    """The service counts as alive while nothing else happens, so the lease becomes `unheard`."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(expire="keep"))
        lease = (await ask(admission, "a", "p")).lease
        await pass_time(one, 56 * SECOND)
        assert (await admission.queries.pool("p")).unheard == 0
        await pass_time(one, 64 * SECOND)
        assert (await admission.queries.lease(lease.id)).unheard
        assert (await admission.queries.pool("p")).unheard == 1
        assert [view.unheard for view in (await admission.queries.pools(None, 10))[0]] == [1]
        await pool_put(admission, "q", spec())
        assert (await admission.queries.lease(lease.id)).unheard
        assert (await admission.queries.pool("p")).pool.occupied == 1

    with_manual_clock(tmp_path, scenario)


def test_ghosts_do_not_keep_a_unit_idle(tmp_path: Path) -> None:
    """A ticket that is not polled for its patience is withdrawn, and the next is granted."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        holder = (await ask(admission, "a", "p")).lease
        ghost = (await ask(admission, "b", "p")).lease
        alive = (await ask(admission, "c", "p", patience=300 * SECOND)).lease
        await pass_time(one, 31 * SECOND)
        await admission.change(LeaseRelease(holder.id, Proof("me")))
        assert (await admission.queries.lease(ghost.id)).lease.cause == "unheard"
        assert (await admission.queries.lease(alive.id)).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_a_ticket_whose_caller_left_is_withdrawn_after_its_patience(tmp_path: Path) -> None:
    """When the caller of a long poll leaves, its ticket is kept for the patience it asked for."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "a", "p")
        leaving = asyncio.Event()

        async def gone() -> None:
            await leaving.wait()

        polling = asyncio.create_task(admission.acquire(wish("b", "p"), TESTER, 60.0, gone))
        await until_queued(admission, "p")
        leaving.set()
        ghost = (await polling).lease
        await pass_time(one, 31 * SECOND)
        assert (await admission.queries.lease(ghost.id)).lease.cause == "unheard"

    with_manual_clock(tmp_path, scenario)


def test_holds_end_by_themselves(tmp_path: Path) -> None:
    """A hold ends a lease whether or not it is renewed; the pacing delays the next grant."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        paced = spec(2, hold=10 * MINUTE, pacing=Pacing(interval=5 * MINUTE))
        await pool_put(admission, "p", paced)
        first = (await ask(admission, "a", "p", ttl=60 * MINUTE)).lease
        second = (await ask(admission, "b", "p", patience=60 * MINUTE)).lease
        assert second.state == "waiting"
        await pass_time(one, 5 * MINUTE)
        assert (await admission.queries.lease(second.id)).lease.state == "granted"
        await pass_time(one, 5 * MINUTE)
        assert (await admission.queries.lease(first.id)).lease.cause == "hold_over"

    with_manual_clock(tmp_path, scenario)


def test_a_jump_of_the_wall_clock_ends_nothing(tmp_path: Path) -> None:
    """Leases end by elapsed time, not when the wall clock is set forward or back."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease
        for jump in (3600 * SECOND, -7200 * SECOND):
            one.clock.jump += jump
            await one.service.admission.sweeper.sweep()
            assert (await admission.queries.lease(lease.id)).lease.state == "granted"
        await pass_time(one, 61 * SECOND)
        assert (await admission.queries.lease(lease.id)).lease.cause == "ttl_over"

    with_manual_clock(tmp_path, scenario)


def test_keys_are_forgotten_after_a_day(tmp_path: Path) -> None:
    """A key used again within a day returns its old lease; a week later, a new one."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        first = (await ask(admission, "host-1", "p")).lease
        await admission.change(LeaseRelease(first.id, Proof("me")))
        assert await admission.forget() == 0
        assert (await ask(admission, "host-1", "p")).lease.id == first.id
        one.clock.at += 7 * 24 * 60 * MINUTE
        assert await admission.forget() == 1
        again = (await ask(admission, "host-1", "p")).lease
        assert again.id != first.id
        assert again.state == "granted"
        assert again.token is not None
        assert first.token is not None
        assert again.token > first.token

    with_manual_clock(tmp_path, scenario)
