"""What a batch leaves for the next one is done even if its process ends in between."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.service.admission.lease_cases import LeasePoll, LeaseRelease
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.pools import BEAT, MINUTE, ask, pool_pause, pool_put, spec
from tests.service.running import CLASSES, TRAITS, ManualClock, fatal

Scenario = Callable[[Service], Awaitable[Any]]


class Life:
    """One process after another on one file, none of which does anything by itself."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self._url = f"sqlite:///{path}/m.sqlite"

    def run(self, scenario: Scenario) -> Any:
        """Run a scenario in a process of its own, which then ends."""

        async def scene() -> Any:
            service = await Service.start(
                open_engine(self._url), self.clock, CLASSES, TRAITS, on_fatal=fatal
            )
            # Nothing may run between a batch and the end of the process.
            await service.admission._capacity_retry.stop()
            await service.admission.sweeper.stop()
            try:
                return await scenario(service)
            finally:
                await service.stop()

        return asyncio.run(scene())


async def pass_time_of(life: Life, service: Service, microseconds: int) -> None:
    """Let time pass in steps, as for a service that is alive."""
    for _ in range(0, microseconds, BEAT):
        life.clock.at += BEAT
        await service.admission.sweeper.sweep()


async def states(service: Service, *known: Lease) -> list[str]:
    """Do once what the next process does all the time; return the states of some leases."""
    await service.admission.sweeper.sweep()
    await service.admission._capacity_retry._try()
    return [(await service.admission.queries.lease(one.id)).lease.state for one in known]


def test_what_is_set_aside_for_nobody_is_granted_after_a_restart(tmp_path: Path) -> None:
    """A gang's owner has used up its quota in the scan that set units aside for the gang."""
    life = Life(tmp_path)

    async def before(service: Service) -> Lease:
        admission = service.admission
        await pool_put(admission, "p", spec(3, quota=2))
        await pool_put(admission, "q", spec(2))
        await ask(admission, "holder", "q", owner="b")
        await pool_pause(admission, "p", True)
        await ask(admission, "gang", "p", "q", units=2, owner="a")
        await ask(admission, "small", "p", owner="a")
        other = (await ask(admission, "other", "p", units=2, owner="b")).lease
        await pool_pause(admission, "p", False)
        assert (await admission.queries.lease(other.id)).lease.state == "waiting"  # the control
        return other

    other = life.run(before)
    assert life.run(lambda service: states(service, other)) == ["granted"]


def test_who_has_come_back_is_granted_after_a_restart(tmp_path: Path) -> None:
    """A ticket was passed over while a unit became free; only its own poll tells of it."""
    life = Life(tmp_path)

    async def before(service: Service) -> Lease:
        admission = service.admission
        await pool_put(admission, "p", spec())
        held = (await ask(admission, "held", "p")).lease
        away = (await ask(admission, "away", "p", attended=True, patience=MINUTE)).lease
        await pass_time_of(life, service, 20 * SECOND)
        await admission.change(LeaseRelease(held.id, Proof("me")))
        assert (await admission.queries.lease(away.id)).lease.state == "waiting"  # the control
        await service.transactor.submit(LeasePoll(away.id))
        life.clock.at += SECOND
        await pool_put(admission, "other", spec())
        return away

    async def after(service: Service) -> list[str]:
        await service.transactor.submit(LeasePoll(away.id))
        return await states(service, away)

    away = life.run(before)
    assert life.run(after) == ["granted"]
