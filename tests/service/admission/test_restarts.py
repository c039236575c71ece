"""What a batch leaves for the next one is done even if its process ends in between."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof
from moorage.service.admission.lease_cases import LeasePoll, LeaseRelease
from moorage.service.app import Service
from moorage.store.open import open_engine
from tests.service.pools import MINUTE, ask, pool_pause, pool_put, spec
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


async def states(service: Service, *known: Lease) -> list[str]:
    """Sweep as the next process does, and return the states of some leases."""
    await service.admission.sweeper.sweep()
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
