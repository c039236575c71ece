"""Bugs of the service that the simulator has found, each as it was found."""

import asyncio
from pathlib import Path

from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRetry
from moorage.service.admission.pool_cases import PoolDelete
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.pools import MINUTE, ask, pass_time, pool_put, refusal, spec, with_manual_clock
from tests.service.running import CLASSES, TESTER, TRAITS, ManualClock, Running, fatal


def test_a_jump_seen_by_a_read_is_remembered(tmp_path: Path) -> None:
    """A process sees a jump of the wall clock and ends; the next one does not count it as time."""
    clock, path = ManualClock(), f"sqlite:///{tmp_path}/m.sqlite"

    async def started() -> Service:
        engine = open_engine(path)
        return await Service.start(engine, clock, CLASSES, TRAITS, on_fatal=fatal)

    async def scenario() -> None:
        service = await started()
        await pool_put(service.admission, "p", spec(2))
        held = await ask(service.admission, "1", "p", hold=10 * MINUTE)
        clock.jump += 60 * MINUTE
        clock.at += SECOND
        await service.admission.waited(held.lease.id, 0.0)  # changes nothing by itself
        await service.stop()
        service = await started()
        await service.admission.sweeper.sweep()
        seen = await service.admission.queries.lease(held.lease.id)
        await service.stop()
        assert seen.lease.state == "granted"

    asyncio.run(scenario())


def test_a_new_quota_counts_earlier_leases(tmp_path: Path) -> None:
    """The batch that gives a pool its quota grants no owner more than that."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        first = await ask(admission, "1", "p")
        second = await ask(admission, "2", "p")
        await pool_put(admission, "p", spec(3, quota=1))
        assert (await admission.queries.lease(second.lease.id)).lease.state == "waiting"
        await admission.change(LeaseRelease(first.lease.id, Proof("me")))
        assert (await admission.queries.lease(second.lease.id)).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_a_requeued_retry_that_is_not_polled_is_withdrawn(tmp_path: Path) -> None:
    """A retry that is put into the line must be polled there, as any other ticket."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1, on_retry="requeue"))
        first = await ask(admission, "1", "p")
        waiting = await ask(admission, "2", "p")
        again = await admission.change(LeaseRetry(first.lease.id, "me", Proof("me"), "3", TESTER))
        assert again.lease.state == "waiting"
        await pass_time(one, 31 * SECOND)
        assert (await admission.queries.lease(again.lease.id)).lease.cause == "unheard"
        assert (await admission.queries.lease(waiting.lease.id)).lease.state == "granted"

    with_manual_clock(tmp_path, scenario)


def test_a_pool_does_not_come_back_in_the_batch_that_deletes_it(tmp_path: Path) -> None:
    """The stored row of a ticket that the batch withdraws still names the pool."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(2))
        await pool_put(admission, "q", spec(2))
        held = (await ask(admission, "1", "p", units=2)).lease
        gang = (await ask(admission, "2", "p", "q", attended=True, patience=MINUTE)).lease
        behind = (await ask(admission, "3", "p")).lease
        submit = one.service.transactor.submit
        await asyncio.gather(
            submit(LeaseRelease(gang.id, Proof("me"))),
            submit(PoolDelete("q", TESTER)),
            submit(LeaseRelease(held.id, Proof("me"))),
        )
        assert (await admission.queries.lease(behind.id)).lease.state == "granted"
        assert await refusal(admission.queries.pool("q")) == Code.POOL_NOT_FOUND
        assert await one.service.operations.check() == []

    with_manual_clock(tmp_path, scenario)
