"""What the simulator has found in the service, each as it was found."""

import asyncio
from pathlib import Path

from moorage.core.admission.leases import Proof
from moorage.core.clock import SECOND
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.pools import MINUTE, ask, by_hand, later, spec
from tests.service.running import CLASSES, TESTER, TRAITS, HandClock, Running, fatal


def test_a_jump_is_remembered_by_whatever_saw_it(tmp_path: Path) -> None:
    """A process sees the wall clock set and ends; the next one does not take it for time."""
    clock, path = HandClock(), f"sqlite:///{tmp_path}/m.sqlite"

    async def started() -> Service:
        engine = open_engine(path)
        return await Service.start(engine, clock, CLASSES, TRAITS, on_fatal=fatal)

    async def scene() -> None:
        service = await started()
        await service.admission.pool_put("p", spec(2), None, TESTER)
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

    asyncio.run(scene())


def test_a_new_quota_counts_what_was_held_before(tmp_path: Path) -> None:
    """The very batch that gives a pool its quota grants nobody more than that."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(1), None, TESTER)
        first = await ask(admission, "1", "p")
        second = await ask(admission, "2", "p")
        await admission.pool_put("p", spec(3, quota=1), None, TESTER)
        assert (await admission.queries.lease(second.lease.id)).lease.state == "waiting"
        await admission.release(first.lease.id, Proof("me"))
        assert (await admission.queries.lease(second.lease.id)).lease.state == "granted"

    by_hand(tmp_path, scene)


def test_a_new_attempt_that_nobody_asks_for_is_withdrawn(tmp_path: Path) -> None:
    """Who tries again and is put into the line must be heard of there, as everybody else."""

    async def scene(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("p", spec(1, on_retry="requeue"), None, TESTER)
        first = await ask(admission, "1", "p")
        waiting = await ask(admission, "2", "p")
        again = await admission.retry(first.lease.id, Proof("me"), "3", TESTER)
        assert again.lease.state == "waiting"
        await later(one, 31 * SECOND)
        assert (await admission.queries.lease(again.lease.id)).lease.cause == "unheard"
        assert (await admission.queries.lease(waiting.lease.id)).lease.state == "granted"

    by_hand(tmp_path, scene)
