"""Pools that create slots for waiting tickets, as a configuration of Boskos permits."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from moorage.core.ids import LeaseId
from moorage.service.admission.service import Admission
from moorage.service.compat.boskos import Boskos
from moorage.service.compat.boskos_cases import Release
from tests.service.pools import MINUTE, ask, opened
from tests.service.running import TESTER

Scenario = Callable[[Admission, Boskos], Awaitable[None]]


def configuration(most: int) -> str:
    """A type without slots at first and with `most` at most."""
    return f"resources:\n- {{type: grows, state: free, min-count: 0, max-count: {most}}}\n"


def play(folder: Path, most: int, scenario: Scenario) -> None:
    """Run a scenario on a service with that configuration."""
    file = folder / "boskos.yaml"
    file.write_text(configuration(most))

    async def run() -> None:
        async with opened(f"sqlite:///{folder}/m.sqlite") as service:
            boskos = Boskos(
                service.engine, service.transactor, str(file), strict=False, native=True
            )
            await boskos.start()
            try:
                await scenario(service.admission, boskos)
            finally:
                await boskos.stop()

    asyncio.run(run())


async def granted(admission: Admission, *leases: LeaseId) -> None:
    """Return once all of these are granted."""
    async with asyncio.timeout(20):
        for lease in leases:
            while (await admission.queries.lease(lease)).lease.state != "granted":
                pass


async def wanting(admission: Admission, key: str, units: int = 1) -> LeaseId:
    """Ask with a long patience."""
    return (await ask(admission, key, "grows", units=units, patience=30 * MINUTE)).lease.id


def test_slots_for_all_waiting_tickets_are_created(tmp_path: Path) -> None:
    """A ticket for three and one for one get the four slots that are permitted."""

    async def scenario(admission: Admission, _: Boskos) -> None:
        wide, narrow = await asyncio.gather(
            wanting(admission, "wide", 3), wanting(admission, "narrow")
        )
        await granted(admission, wide, narrow)
        assert (await admission.queries.pool("grows")).pool.occupied == 4

    play(tmp_path, 4, scenario)


def test_a_tombstoned_slot_is_replaced(tmp_path: Path) -> None:
    """A ticket waits for the only permitted slot, which turns out to be beyond repair."""

    async def scenario(admission: Admission, boskos: Boskos) -> None:
        holder = await wanting(admission, "holder")
        (name,) = (await admission.queries.lease(holder)).lease.slots["grows"]
        waiting = await wanting(admission, "waiting")
        await boskos.transactor.submit(Release(name, "me", boskos.native, "tombstone", TESTER))
        await granted(admission, waiting)

    play(tmp_path, 1, scenario)


def test_a_higher_maximum_serves_waiting_tickets(tmp_path: Path) -> None:
    """A configuration that permits more slots applies to tickets that already wait."""

    async def scenario(admission: Admission, _: Boskos) -> None:
        leases = [await wanting(admission, str(n)) for n in range(4)]
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(configuration(5))
        os.replace(fresh, tmp_path / "boskos.yaml")
        await granted(admission, *leases)
        assert (await admission.queries.pool("grows")).slots == {"leased": 4}

    play(tmp_path, 1, scenario)
